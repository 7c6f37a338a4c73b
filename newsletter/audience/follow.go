package audience

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// The stream of events, which package outbox owns, and its reader.
const (
	stream = "events"
	field  = "e" // holds an event as JSON
	group  = "audience"
)

// Run keeps the states of lists in step with what recipients ask for by links and buttons of mail, removes
// subscriptions that nobody confirmed, and hands on events, until ctx ends. Then it returns nil.
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
			continue // of a later version, or about something else
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
