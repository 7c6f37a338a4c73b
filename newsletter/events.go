package newsletter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// The stream of events, which package outbox owns, and the reader of this package.
const (
	stream = "events"
	field  = "e" // holds an event as JSON
	group  = "newsletter"
)

// tell notes an event that is emitted once the change is stored.
func (s *stored) tell(kind event.Type, at time.Time) {
	id := ulid.MustNew(ulid.Timestamp(at), rand.Reader).String()
	s.PendingEvents = append(s.PendingEvents, pendingEvent{ID: id, Type: kind, At: at, State: s.State,
		Reason: s.Reason, Run: len(s.Runs)})
}

// emit emits the events of a campaign that were noted. After a crash one may come twice, under its id.
func (c *Campaigns) emit(ctx context.Context, one *campaign) error {
	if len(one.PendingEvents) == 0 {
		return nil
	}
	var counts api.CampaignStates
	if n := len(one.Runs); n > 0 {
		sum, err := c.sum(ctx, one, n)
		if err != nil {
			return err
		}
		counts, _ = one.states(n, sum)
	}
	numbers, err := json.Marshal(counts)
	if err != nil {
		return err
	}
	for _, t := range one.PendingEvents {
		e, err := event.New(t.ID, t.Type, one.Account, t.At, event.CampaignChange{Campaign: one.id, Name: one.Name,
			Run: t.Run, State: t.State, Reason: t.Reason, States: numbers})
		if err != nil {
			return err
		}
		line, err := e.Line()
		if err != nil {
			return err
		}
		err = c.DB.Client().XAdd(ctx, &redis.XAddArgs{Stream: redisdb.Key(0, stream), Values: []string{field,
			line}}).Err()
		if err != nil {
			return redisdb.Failed(err, "emit an event of campaign %s", one.id)
		}
	}
	_, err = c.change(ctx, "", one.id, func(s *stored) error {
		s.Version--
		last := one.PendingEvents[len(one.PendingEvents)-1].ID
		for len(s.PendingEvents) > 0 && s.PendingEvents[0].ID <= last {
			s.PendingEvents = s.PendingEvents[1:]
		}
		return nil
	})
	return err
}

// follow applies the results of deferred people's messages, until ctx ends.
func (c *Campaigns) follow(ctx context.Context) {
	err := c.DB.Follow(ctx, redisdb.Follow{Stream: stream, Group: group, Gather: redisdb.Unhurried}, c.apply)
	if err != nil {
		c.log.ErrorContext(ctx, "events not followed: deferred mail of campaigns has no result", "error", err)
	}
}

// apply applies a batch of events.
func (c *Campaigns) apply(ctx context.Context, entries []redisdb.Entry) error {
	for _, entry := range entries {
		text := entry.Text(field)
		if !strings.Contains(text, `"campaign"`) {
			continue
		}
		e, err := event.Parse([]byte(text))
		if err != nil {
			continue // from a later version
		}
		move, ok := results[e.Type]
		if !ok {
			continue
		}
		var data struct {
			event.Message
			event.Failure
			Job    event.Job
			Reason string `json:"reason"` // in messageSuppressed
		}
		if json.Unmarshal(e.Data, &data) != nil || data.Message.Campaign == nil {
			continue
		}
		at, err := c.about(ctx, data.QueueID)
		if err != nil {
			return err
		}
		if at == nil {
			continue
		}
		if e.Type == event.MessageReplayed {
			err = c.Log.Reopened(ctx, at.run, at.chunk, at.offset)
		} else {
			switch {
			case e.Type == event.MessageFailed && data.Verdict == string(smtpsend.Hard):
				move.To = sendlog.Bounced
			case data.InDoubt && (e.Type == event.MessageFailed || e.Type == event.MessageCancelled):
				move.To = sendlog.InDoubt // an attempt may have delivered it
			case e.Type == event.MessageSuppressed && data.Reason == string(suppression.Unsubscribe):
				move.To = sendlog.Unsubscribed
			}
			move.Attempts = cmp.Or(move.Attempts, data.Job.AttemptsMade) // a message may also fail without an attempt
			move.Offset, move.At, move.Why = at.offset, e.Time, cut(cmp.Or(data.SMTPResponse, data.Error, data.Reason))
			err = c.Log.Ended(ctx, at.run, at.chunk, move)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// results are the states that events about messages lead to.
var results = map[event.Type]sendlog.Move{
	event.MessageSent:          {To: sendlog.Sent, Attempts: sendlog.OneMore},
	event.MessageFailed:        {To: sendlog.Failed},
	event.MessageDeliveryError: {To: sendlog.Deferred},
	event.MessageReplayed:      {To: sendlog.Deferred},
	event.MessageCancelled:     {To: sendlog.Cancelled},
	event.MessageSuppressed:    {To: sendlog.Suppressed},
}

// recipient is a person of a run in the send log.
type recipient struct {
	c             *campaign
	run           sendlog.Run
	chunk, offset int
	ordinal       uint32
}
