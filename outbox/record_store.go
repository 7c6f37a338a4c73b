package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/redis/go-redis/v9"
)

// store is the record of messages in Redis, and what every group of the outbox stands on: the connection, the
// clock, the names of the keys, the codecs, the settings, the log.
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
	unseen  atomic.Int64 // bytes put into Redis since it last looked at its memory
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
	contents, err := newCodec()
	if err != nil {
		return nil, err
	}
	s := &store{
		Parts: parts, opts: o, clock: newClock(o.Now), codec: contents, jsons: newPacker(), log: o.Logger,
		mail:    maillog{o.Logger},
		metrics: newMetrics(o.Registry),
	}
	s.shared = newSharedContents(s)
	s.queued = newQueuedNotes(s)
	return s, nil
}

// place finds the partition of a message. What can't be an id is as unknown as an id that was never given
// out.
func (s *store) place(id string) (int, error) {
	p, ok := partitionOf(id, s.DB.Partitions())
	if !ok {
		return 0, unknownMessage(id)
	}
	return p, nil
}

// retryAfterOutage is when a client that found Redis away or full should come back.
const retryAfterOutage = 5 * time.Second

// gatewayExists returns NotFound for a gateway that does not exist.
func (s *store) gatewayExists(ctx context.Context, id string) error {
	ok, err := s.Gateways.Exists(ctx, id)
	if err == nil && !ok {
		err = fault.New(fault.NotFound, "GatewayNotFound", "No gateway with id %q", id)
	}
	return err
}

// away tells Redis being away from a fault of ours.
func away(err error, doing string) error {
	if redisdb.Unavailable(err) {
		f := fault.Wrap(fmt.Errorf("%s: %w", doing, err), fault.Unavailable, "RedisAway",
			"The message store is not available; try again shortly")
		f.RetryAfter = retryAfterOutage
		return f
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// unknownMessage is the answer about an id nobody knows.
func unknownMessage(id string) error {
	return fault.New(fault.NotFound, "MessageNotFound", "No message with queueId %q", id)
}

// texts reads replies that may be nil as strings.
func texts(cmd *redis.SliceCmd) []string {
	values := cmd.Val()
	out := make([]string, len(values))
	for i, v := range values {
		out[i], _ = v.(string)
	}
	return out
}
