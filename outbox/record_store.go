package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// store has what all parts of the outbox share: the connection, the clock, the keys, the codecs, the
// settings, the log.
type store struct {
	Parts
	opts    Options
	keys    keys
	clock   *clock
	codec   *codec
	jsons   *packer
	shared  *sharedContents
	queued  *queuedNotes
	handled atomic.Int64 // messages accepted and attempts recorded by this process
	unseen  atomic.Int64 // bytes put into Redis since accept.lua last checked its memory
	log     *slog.Logger
	mail    maillog
	metrics *metrics
}

func newStore(parts Parts, o Options) (*store, error) {
	if parts.DB == nil || parts.Queue == nil || parts.Control == nil || parts.Router == nil ||
		parts.Accounts == nil || parts.Gateways == nil {
		return nil, errors.New("new outbox: a part is missing")
	}
	if parts.DB.Partitions() > maxPartitions {
		return nil, errors.New("new outbox: more partitions than an id can name (1024)")
	}
	o = o.withDefaults()
	sealing, err := newSealer(parts.Ring, o.Seal)
	if err != nil {
		return nil, err
	}
	contents, err := newCodec(sealing)
	if err != nil {
		return nil, err
	}
	s := &store{
		Parts: parts, opts: o, clock: newClock(o.Now), codec: contents, jsons: newPacker(), log: o.Logger,
		mail: maillog{o.Logger}, metrics: newMetrics(o.Registry),
	}
	s.shared = newSharedContents(s)
	s.queued = newQueuedNotes(s)
	return s, nil
}

// place returns a message's partition, or the error for an unknown message if id is not a message id.
func (s *store) place(id string) (int, error) {
	p, ok := partitionOf(id, s.DB.Partitions())
	if !ok {
		return 0, unknownMessage(id)
	}
	return p, nil
}

// keepKey returns how many seconds an idempotency key lasts after its message ended.
func (s *store) keepKey() int { return int(s.opts.KeyRetention.Seconds()) }

// retryAfterOutage is when a client should retry if Redis was unreachable or full.
const retryAfterOutage = 5 * time.Second

// gatewayExists returns NotFound for a gateway that does not exist.
func (s *store) gatewayExists(ctx context.Context, id string) error {
	ok, err := s.Gateways.Exists(ctx, id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "GatewayNotFound", "There is no gateway with ID %q", id)
	}
	return err
}

// redisError is redisdb.Failed with the outbox' own time to retry after an outage; nil if err is nil.
func redisError(err error, doing string) error {
	if err == nil {
		return nil
	}
	err = redisdb.Failed(err, "%s", doing)
	if f, ok := err.(*fault.Error); ok { //nolint:errorlint // made just now
		f.RetryAfter = retryAfterOutage
	}
	return err
}

// unknownMessage returns the error for an id that no message has.
func unknownMessage(id string) error {
	return fault.New(fault.NotFound, "MessageNotFound", "There is no message with queueId %q", id)
}

// texts returns the values of a reply as strings; "" for nil.
func texts(cmd *redis.SliceCmd) []string {
	values := cmd.Val()
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}

// lookEvery is how many bytes this process puts into Redis before accept.lua checks the memory again. The
// share that Admits knows is a few seconds old, and a hundred clients with 20 MB each fill the last quarter
// of the memory in one second.
const lookEvery = 1 << 20

// overhead is about what a message takes in Redis in addition to its content, in bytes.
const overhead = 2 << 10

// countBytes counts the bytes of a message on its way to Redis. It returns the share of the memory that
// accept.lua checks, or "" if it need not check.
func (s *store) countBytes(size int) string {
	if s.unseen.Add(int64(size+overhead)) < lookEvery {
		return ""
	}
	return strconv.FormatFloat(s.opts.MaxMemoryShare, 'f', -1, 64)
}

// checked notes that accept.lua has checked the memory. Until then it checks for every message.
func (s *store) checked() { s.unseen.Store(0) }

// clock is the clock of Redis, so that machines with different clocks agree on leases and due times.
type clock struct {
	now    func() time.Time // the machine's clock
	offset atomic.Int64     // what to add to it, in nanoseconds
	known  atomic.Bool      // the offset was measured
	fixed  bool             // now is given by a test: Redis is not asked
}

func newClock(now func() time.Time) *clock {
	if now != nil {
		return &clock{now: now, fixed: true}
	}
	return &clock{now: time.Now}
}

// Now is the time for records.
func (c *clock) Now() time.Time { return c.now().Add(time.Duration(c.offset.Load())) }

// ready compares the clock with Redis unless that was done. It is called before times are written into
// records, because a process may work before its sweeper has run.
func (c *clock) ready(ctx context.Context, rdb redis.UniversalClient) error {
	if c.fixed || c.known.Load() {
		return nil
	}
	return c.calibrate(ctx, rdb)
}

// calibrate compares the clock with Redis' clock.
func (s *store) calibrate(ctx context.Context) error { return s.clock.calibrate(ctx, s.DB.Client()) }

// work returns the work that there is while any of some keys exists in any partition.
func (s *store) work(of func(keys, int) []string) *redisdb.Work {
	var all []string
	for p := range s.DB.Partitions() {
		all = append(all, of(s.keys, p)...)
	}
	return s.DB.Looks().For(all...)
}

// stalled is the longest round trip that calibrate uses.
const stalled = time.Second

// calibrate compares the machine's clock with Redis' clock. It assumes that the answer is from the middle of
// the round trip. An answer that took too long changes nothing; it is an error if there was none before.
func (c *clock) calibrate(ctx context.Context, rdb redis.UniversalClient) error {
	if c.fixed {
		return nil
	}
	sent := c.now()
	theirs, err := rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("ask Redis for its time: %w", err)
	}
	took := c.now().Sub(sent)
	if took > stalled && !c.known.Load() {
		return fmt.Errorf("ask Redis for its time: the answer took %s: %w", took.Round(time.Millisecond),
			context.DeadlineExceeded)
	}
	if took <= stalled {
		c.offset.Store(int64(theirs.Sub(sent.Add(took / 2))))
		c.known.Store(true)
	}
	return nil
}
