package redisdb

import (
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// blockingPoolSize bounds the connections that wait for stream entries: one for each follower (five at
// present) and partition (256 at most).
const blockingPoolSize = 2000

// Retries of a connection. A refused connection or a server that is loading is tried 7 times within 0.4 to
// 1.5 seconds. That hides a restart of the embedded server, and is short enough to respond to a client in
// time.
const (
	maxRetries      = 6
	minRetryBackoff = 20 * time.Millisecond
	maxRetryBackoff = 500 * time.Millisecond
	dialTimeout     = 3 * time.Second
	dialTries       = 1 // the retries above are enough
	// An operator deleting a million tasks stops Redis for 5 seconds; giving up before that would only add
	// work to it.
	readTimeout  = 10 * time.Second
	writeTimeout = 5 * time.Second
	// An idle process has some 70 connections. With the library's 32 KiB twice for each they would hold 4.5
	// MB.
	bufferSize = 16 << 10
)

// client returns the client for a target. It connects on first use. A Cluster's client appends to the
// addresses it is given, so each has its own.
func (t target) client(pool int) redis.UniversalClient {
	o := t.UniversalOptions
	o.Addrs, o.IsClusterMode = slices.Clone(o.Addrs), t.mode == Cluster
	o.ClientName = "postroom"
	o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = maxRetries, minRetryBackoff, maxRetryBackoff
	o.DialTimeout, o.DialerRetries = dialTimeout, dialTries
	o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = readTimeout, writeTimeout, true
	o.PoolSize, o.ReadBufferSize, o.WriteBufferSize = pool, bufferSize, bufferSize
	// A hosted service's upgrade notices and the client library's name are not worth a round trip on each
	// connection.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return redis.NewUniversalClient(&o)
}
