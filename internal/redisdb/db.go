package redisdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Mode is the kind of Redis behind a DB.
type Mode string

const (
	Single   Mode = "single"   // one server somewhere, over TCP, TLS or a unix socket
	Sentinel Mode = "sentinel" // a master found, and found again after a failover, by asking Sentinels
	Cluster  Mode = "cluster"  // a Redis Cluster
	Embedded Mode = "embedded" // a redis-server child process of this one, with an append-only file
)

// Options selects the Redis. The zero value starts an embedded one in the directory "data".
type Options struct {
	// setting redis.url: redis[s]://, unix://, redis+sentinel://, redis+cluster://; empty for embedded
	URL        string
	Partitions int          // how many partitions the keys are spread over; defaults to 1
	Dir        string       // data directory of the embedded server; empty: "data"
	Fsync      string       // for the embedded server: "everysec" (default) or "always"
	MaxMemory  int64        // bytes of data that the embedded server may have; zero means any number
	PoolSize   int          // connections at most, to each node; defaults to 200. They are opened when needed
	Logger     *slog.Logger // nil if nothing is logged

	// WaitReplicas is how many replicas must have the writes of [DB.ReplicatedPipeline] and
	// [Script.RunReplicated]. Zero means none. The embedded Redis has none.
	WaitReplicas int
	WaitTimeout  time.Duration // how long to wait for them; defaults to 1 second
}

// defaultWaitTimeout is a thousand times what a healthy replica in the same building takes.
const defaultWaitTimeout = time.Second

// defaultPoolSize leaves room for the default number of workers (154), their heartbeats and as many
// concurrent API requests.
const defaultPoolSize = 200

// openWait is how long Open waits for a Redis that refuses connections, as happens when all containers of a
// host start together.
const openWait = 10 * time.Second

// DB is an open connection to Redis. It is safe for concurrent use.
type DB struct {
	client     redis.UniversalClient
	shared     *Shared
	looks      *Looks
	tails      *tails
	blocking   redis.UniversalClient // for reads that wait, so that they never take connections from the others
	partitions int
	mode       Mode
	together   bool // keys of all partitions may stand in one script
	address    string
	log        *slog.Logger
	stop       func() error // stops the embedded Redis; nil if there is none
	wait       waiting      // for the writes to replicate
	state      healthCache
	closeOnce  sync.Once
	closeErr   error
}

// Open connects to the Redis of o.URL, or starts an embedded one, and returns when it can be used. It waits
// up to 10 seconds (or until ctx ends) for a server that is starting or not reachable yet. It fails
// immediately if the address, the password or the version is wrong. The caller closes the DB.
func Open(ctx context.Context, o Options) (*DB, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	logging.Disable() // go-redis prints connection errors to stderr; Run logs them once, in our format
	db := &DB{partitions: o.Partitions, log: o.Logger, wait: waiting{replicas: o.WaitReplicas,
		timeout: o.WaitTimeout}}
	t, err := db.locate(ctx, o)
	if err != nil {
		return nil, err
	}
	db.mode, db.address = t.mode, t.String()
	db.client, db.blocking = t.client(o.PoolSize), t.client(blockingPoolSize)
	db.client.AddHook(hurryHook{})
	db.shared = newShared(db.client)
	if err := db.greet(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.looks = NewLooks(db.client, db.together)
	db.tails = &tails{client: db.blocking, together: db.together, began: time.Now(), bySlot: map[string]*tail{}}
	db.log.Info("connected to redis", "mode", db.mode, "address", db.address, "partitions", db.partitions)
	return db, nil
}

// complete sets the defaults and refuses invalid options.
func (o Options) complete() (Options, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Dir == "" {
		o.Dir = "data"
	}
	o.Partitions = cmp.Or(o.Partitions, 1)
	if o.PoolSize == 0 {
		o.PoolSize = defaultPoolSize
	}
	o.Fsync = cmp.Or(o.Fsync, "everysec")
	if o.Partitions < 0 {
		return o, fmt.Errorf("redis.partitions: %d is not a number of partitions, use 1 or more", o.Partitions)
	}
	if o.PoolSize < 0 {
		return o, fmt.Errorf("redis pool size: %d is not a number of connections", o.PoolSize)
	}
	o.WaitTimeout = cmp.Or(o.WaitTimeout, defaultWaitTimeout)
	if o.WaitReplicas < 0 || o.WaitReplicas > 0 && o.URL == "" {
		return o, fmt.Errorf("redis.waitReplicas: %d is not a number of replicas that this Redis can have",
			o.WaitReplicas)
	}
	if o.Fsync != "everysec" && o.Fsync != "always" {
		return o, fmt.Errorf("redis.fsync: %q is neither everysec nor always", o.Fsync)
	}
	return o, nil
}

// locate returns the target, and starts an embedded Redis if there is no address.
func (db *DB) locate(ctx context.Context, o Options) (target, error) {
	if o.URL != "" {
		return parseURL(o.URL)
	}
	t, stop, err := openEmbedded(ctx, o)
	db.stop = stop
	return t, err
}

// greet waits until Redis responds, and refuses a version that is too old.
func (db *DB) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	var err error
	for {
		if err = db.client.Ping(ctx).Err(); err == nil || !Unavailable(err) || !Pause(ctx, 100*time.Millisecond) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("redis.url: can't use %s: %w", db.address, err)
	}
	// some compatible servers don't identify themselves
	if info, err := db.client.Info(ctx, "server").Result(); err == nil {
		if err := checkVersion(parseInfo(info)["redis_version"]); err != nil {
			return err
		}
	}
	if db.together, err = db.tryTogether(ctx); err != nil {
		return fmt.Errorf("redis.url: can't use %s: %w", db.address, err)
	}
	return nil
}

// togetherScript touches the keys of several partitions. None of them is ever written.
var togetherScript = NewScript[struct{}, int]("redisdb/together",
	"return redis.call('EXISTS', unpack(KEYS))")

// tryTogether tests the server itself: a single server may be a Cluster of one node, or a proxy that
// spreads keys as a Cluster does.
func (db *DB) tryTogether(ctx context.Context) (bool, error) {
	if db.mode == Cluster {
		return false, nil
	}
	_, err := togetherScript.Run(ctx, db.client, []string{Key(0, "together"), Key(1, "together")}, struct{}{})
	if err != nil && redis.HasErrorPrefix(err, "CROSSSLOT") {
		return false, nil
	}
	return err == nil, err
}

// checkVersion refuses servers older than 6.2, which lack commands that Postroom and its queues use. A
// server that does not report its version (some compatible ones) is accepted.
func checkVersion(version string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n < 2 {
		return nil
	}
	if major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("redis.url: this Redis is version %s, Postroom needs 6.2 or newer", version)
	}
	return nil
}

// Client returns the underlying client: a *redis.Client, or a *redis.ClusterClient in Cluster mode. It must
// not be closed.
func (db *DB) Client() redis.UniversalClient { return db.client }

// Shared returns the runner of scripts in shared round trips.
func (db *DB) Shared() *Shared { return db.shared }

// Partitions returns the number of partitions that keys are spread over, at least 1.
func (db *DB) Partitions() int { return db.partitions }

// Mode returns the kind of Redis.
func (db *DB) Mode() Mode { return db.mode }

// Together reports whether one script may use keys of several partitions: false in a Cluster, and for a
// server that treats keys as a Cluster does. It is the same for all processes on one Redis.
func (db *DB) Together() bool { return db.together }

// Address returns the address of the Redis for display: without user, password or query.
func (db *DB) Address() string { return db.address }

// Close closes all connections, then stops the embedded server, which first writes everything to disk. The
// DB cannot be used afterwards. Further calls return the same result.
func (db *DB) Close() error {
	db.closeOnce.Do(func() { db.closeErr = db.close() })
	return db.closeErr
}

func (db *DB) close() error {
	var errs []error
	if db.blocking != nil {
		errs = append(errs, db.blocking.Close())
	}
	if db.tails != nil {
		db.tails.close()
	}
	if db.client != nil {
		errs = append(errs, db.client.Close())
		db.shared.close()
	}
	if db.stop != nil {
		errs = append(errs, db.stop())
	}
	return errors.Join(errs...)
}

// Pause waits for d and reports true, or false as soon as ctx ends.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
