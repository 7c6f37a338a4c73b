package audience

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// queued is the stream of a shard in which events wait to be handed on. It is only used in a Cluster.
const queued = "subscriber-events"

func queuedKey(shard int) string { return redisdb.Key(shard, queued) }

// eventsKey returns the stream that takes the events of a chunk. A script in a Cluster reaches only the slot
// of the chunk, where nobody follows events: there they wait in a stream of the shard.
func (s *store) eventsKey(chunk int) string {
	if s.db.Together() {
		return redisdb.Key(0, stream)
	}
	return queuedKey(shardOf(chunk))
}

// telling is the event of a change of a subscription.
type telling struct {
	kind           event.Type
	listID, reason string
}

// fillEvents writes the events of a change that is about to be made.
func (c *change) fillEvents(account string, at time.Time) error {
	c.events = nil
	for _, l := range c.lists {
		if l.tell == nil {
			continue
		}
		id := ulid.MustNew(ulid.Timestamp(at), rand.Reader).String()
		e, err := event.New(id, l.tell.kind, account, at, event.SubscriptionChange{Subscriber: idOf(c.ordinal),
			Email: c.new.email, ListID: l.tell.listID, Reason: l.tell.reason})
		if err != nil {
			return err
		}
		line, err := e.Line()
		if err != nil {
			return err
		}
		c.events = append(c.events, line)
	}
	return nil
}

// tell adds events to the changes of a confirmation. Their reason is the source of the subscription
// that was pending.
func (c *Confirmations) tell(ctx context.Context, account string, old *record, changes []listChange,
	lists []*List) error {
	var sources []uint32
	for _, l := range changes {
		sources = append(sources, old.on(l.list).source)
	}
	texts, err := c.Subscribers.words.read(ctx, account, sources)
	if err != nil {
		return err
	}
	for i := range changes {
		for _, list := range lists {
			if list.Number == changes[i].list {
				changes[i].tell = &telling{event.SubscriberConfirmed, list.ListID, texts[sources[i]]}
			}
		}
	}
	return nil
}

// waiting are the events that wait in the streams of shards. Without a Cluster there are none.
type waiting struct{ db *redisdb.DB }

// handOn moves events to the stream that is followed, until ctx ends. After a crash one may come twice, under
// its id.
func (w waiting) handOn(ctx context.Context) error {
	if w.db.Together() {
		return nil
	}
	return w.db.Follow(ctx, redisdb.Follow{Stream: queued, Group: group, Partitions: shards},
		func(ctx context.Context, entries []redisdb.Entry) error {
			pipe := w.db.Client().Pipeline()
			ids := make([]string, len(entries))
			for i, e := range entries {
				ids[i] = e.ID
				pipe.XAdd(ctx, &redis.XAddArgs{Stream: redisdb.Key(0, stream), Values: []string{field, e.Text(field)}})
			}
			if _, err := pipe.Exec(ctx); err != nil {
				return redisdb.Failed(err, "hand on events of subscribers")
			}
			err := w.db.Client().XDel(ctx, queuedKey(entries[0].Partition), ids...).Err()
			return redisdb.Failed(err, "remove events of subscribers that were handed on")
		})
}

const (
	handOnPatience = 10 * time.Second
	handOnPause    = 50 * time.Millisecond
)

// handedOn waits until the events of a chunk from before the call were handed on. Unavailable, code
// EventsUnread: they were not in time.
func (w waiting) handedOn(ctx context.Context, chunk int) error {
	if w.db.Together() {
		return nil
	}
	key := queuedKey(shardOf(chunk))
	newest, err := w.db.Client().XRevRangeN(ctx, key, "+", "-", 1).Result()
	for waited := time.Duration(0); err == nil && len(newest) > 0; waited += handOnPause {
		var left []redis.XMessage
		left, err = w.db.Client().XRangeN(ctx, key, "-", newest[0].ID, 1).Result()
		if err != nil || len(left) == 0 {
			break
		}
		if waited >= handOnPatience {
			return fault.New(fault.Unavailable, "EventsUnread", "Events of subscribers wait to be handed on")
		}
		if !redisdb.Pause(ctx, handOnPause) {
			return ctx.Err()
		}
	}
	return redisdb.Failed(err, "look for events of subscribers that wait")
}
