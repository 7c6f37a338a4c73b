package audience

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
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

// eventsKey returns the stream that takes a chunk's events. A script in a Cluster reaches only the chunk's
// slot, where no one follows events: there they wait in the shard's stream.
func (s *store) eventsKey(chunk int) string {
	if s.db.Together() {
		return redisdb.Key(0, stream)
	}
	return queuedKey(shardOf(chunk))
}

// telling is the event of a subscription's change.
type telling struct {
	kind           event.Type
	listID, reason string
}

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
			return fault.New(fault.Unavailable, "EventsUnread", "Subscriber events are waiting to be "+
				"processed")
		}
		if !redisdb.Pause(ctx, handOnPause) {
			return ctx.Err()
		}
	}
	return redisdb.Failed(err, "look for events of subscribers that wait")
}

// The stream of events, which package outbox owns, and its reader.
const (
	stream = "events"
	field  = "e" // holds an event as JSON
	group  = "audience"
)

// Run keeps the states of lists in step with what recipients request by links and buttons in their mail,
// removes unconfirmed subscriptions, and passes on events. It returns nil when ctx ends.
func (s *Subscribers) Run(ctx context.Context) error {
	defer s.Segments.close()
	done := make(chan error, 2)
	go func() { done <- s.sweep(ctx) }()
	go func() { done <- waiting{s.db}.handOn(ctx) }()
	err := s.db.Follow(ctx, redisdb.Follow{Stream: stream, Group: group, Gather: redisdb.Unhurried}, s.follow)
	return errors.Join(err, <-done, <-done)
}

// follow applies the events of a batch.
func (s *Subscribers) follow(ctx context.Context, entries []redisdb.Entry) error {
	for _, entry := range entries {
		text := entry.Text(field)
		if !strings.Contains(text, string(event.ListUnsubscribe)) &&
			!strings.Contains(text, string(event.ListSubscribe)) {
			continue
		}
		e, err := event.Parse([]byte(text))
		if err != nil || e.Type != event.ListUnsubscribe && e.Type != event.ListSubscribe {
			continue // from a later version, or about something else
		}
		var data event.Learned
		if err := json.Unmarshal(e.Data, &data); err != nil {
			continue
		}
		if err := s.apply(ctx, e, data); err != nil {
			return err
		}
	}
	return nil
}

// apply applies the wish of a recipient. The suppression was changed before.
func (s *Subscribers) apply(ctx context.Context, e event.Event, data event.Learned) error {
	_, ordinal, r, err := s.find(ctx, e.Account, folded(data.Recipient))
	if err != nil || r == nil {
		return err
	}
	lists, err := s.listsOf(ctx, e.Account, r, data.ListID)
	if err != nil {
		return err
	}
	source := SourceUnsubscribe
	if data.ListID == "" {
		source = SourceLeftAll
	}
	if e.Type == event.ListUnsubscribe {
		_, err := s.leave(ctx, e.Account, ordinal, lists, source, e.Time)
		return err
	}
	return s.comeBack(ctx, e.Account, ordinal, lists, source, e.Time)
}

// listsOf returns the lists that a subscriber has a state on: all, or the one of an id.
func (s *Subscribers) listsOf(ctx context.Context, account string, r *record, id string) ([]*List, error) {
	var lists []*List
	for _, sub := range r.lists {
		list, err := s.Lists.numbered(ctx, sub.list)
		if err != nil {
			return nil, err
		}
		if list != nil && list.Account == account && (id == "" || list.ListID == id) {
			lists = append(lists, list)
		}
	}
	return lists, nil
}

// comeBack undoes what the same page did: states that it made left, by the same source, become subscribed.
func (s *Subscribers) comeBack(ctx context.Context, account string, ordinal uint32, lists []*List,
	source string, at time.Time) error {
	numbers, err := s.words.intern(ctx, account, source)
	if err != nil {
		return err
	}
	_, err = s.edit(ctx, account, ordinal, func(r *record) ([]listChange, error) {
		var changes []listChange
		for _, list := range lists {
			sub := r.on(list.Number)
			if sub == nil || sub.state != Left || sub.source != numbers[0] || sub.since > seconds(at) ||
				!wasSubscribed(r, list.Number) {
				continue
			}
			r.set(subscription{list: list.Number, state: Subscribed, since: seconds(at), source: numbers[0]})
			changes = append(changes, listChange{list: list.Number, state: Subscribed})
		}
		return changes, nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// wasSubscribed reports whether the state before the current one was Subscribed.
func wasSubscribed(r *record, list uint32) bool {
	for i := len(r.past) - 1; i >= 0; i-- {
		if r.past[i].list == list {
			return r.past[i].state == Subscribed
		}
	}
	return false
}
