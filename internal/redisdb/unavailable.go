package redisdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
)

// awayPrefixes are the prefixes of errors from a server that cannot execute a command now but may later.
var awayPrefixes = []string{
	"LOADING ",     // reading its file after a start
	"READONLY ",    // a replica, just after a failover
	"MASTERDOWN ",  // a replica without its master
	"CLUSTERDOWN ", // slots without a node
	"TRYAGAIN ",    // slots being moved
	"MOVED ",       // slots that have moved on each time they were looked for
	"ASK ",         // slots being moved, met outside of go-redis' own redirections
	"NOREPLICAS ",  // min-replicas-to-write not met
	"MISCONF ",     // the disk is full or failing
	"OOM ",         // maxmemory reached
	"EXECABORT ",   // the same for a command of a transaction
	"BUSY ",        // a script runs for too long
	"UNBLOCKED ",   // the role changed under a blocked command
	"ERR max number of clients",
	"NOGOODSLAVE ",
}

// Unavailable reports whether err is temporary (Redis unreachable, starting, full, too slow, changing
// master), not an error in the program (a wrong command, a wrong type). A cancelled context is neither. A
// context whose deadline passed counts as unavailable, because Redis should have replied by then.
func Unavailable(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.Canceled) {
		return false
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		return awayReply(reply.Error())
	}
	var network net.Error
	return errors.As(err, &network) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, redis.ErrClosed) || errors.Is(err, redis.ErrPoolTimeout) ||
		errors.Is(err, redis.ErrPoolExhausted) ||
		isTopologyLost(err)
}

// Failed adds what was tried to an error of Redis, and makes it an Unavailable fault if it is temporary. nil
// stays nil.
func Failed(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return Away(fmt.Errorf(doing+": %w", append(args, err)...))
}

// Away makes a temporary error (see [Unavailable]) an Unavailable fault. Any other error stays as it is.
func Away(err error) error {
	if !Unavailable(err) {
		return err
	}
	f := fault.Wrap(err, fault.Unavailable, "RedisAway", "Redis is unavailable. Try again shortly")
	if Full(err) {
		f = fault.Wrap(err, fault.Unavailable, "RedisFull",
			"Redis is full: it has reached its maxmemory. Give it more memory, or try again after "+
				"messages have been sent")
	}
	f.RetryAfter = time.Second
	return f
}

// Full reports whether Redis refused a write because it has reached its maxmemory. A failed transaction gives
// no reason; Full assumes the usual one.
func Full(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) && (strings.Contains(reply.Error(), "OOM ") ||
		strings.HasPrefix(reply.Error(), "EXECABORT "))
}

// awayReply checks the error text of a server. Before Redis 7 an error inside a script was wrapped in
// another: "… -OOM command not …".
func awayReply(text string) bool {
	for _, prefix := range awayPrefixes {
		if strings.HasPrefix(text, prefix) || strings.Contains(text, " -"+prefix) {
			return true
		}
	}
	return false
}

// isTopologyLost recognizes the errors of go-redis when no Sentinel or no node of a Cluster responds. They
// have no type.
func isTopologyLost(err error) bool {
	text := err.Error()
	return strings.Contains(text, "sentinels") || strings.Contains(text, "redis: cluster has no nodes") ||
		strings.Contains(text, "cannot load commands") || strings.Contains(text, "connection is in a bad state")
}
