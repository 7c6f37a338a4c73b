package newsletter

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

// pausedAgain is when the message of a deferred person is tried again whose campaign is paused.
const pausedAgain = 30 * time.Second

// Turn says how to treat a deferred person's message directly before an attempt. The person is judged as at
// the first attempt, and gets the campaign's current content. Mail of no campaign goes as it is. Turn returns
// Conflict if a later run has the person, or may have.
func (c *Campaigns) Turn(ctx context.Context, messageID string) (outbox.Turn, error) {
	at, err := c.about(ctx, messageID)
	if err != nil || at == nil {
		return outbox.Turn{}, err
	}
	one, err := c.find(ctx, "", at.c.id)
	switch {
	case fault.Is(err, fault.NotFound):
		return outbox.Turn{}, nil
	case err != nil:
		return outbox.Turn{}, err
	case one.key() != at.run && (one.State == api.CampaignCancelled ||
		one.Runs[at.run.Number-1].cancelled()): // Cancel cancels the last run's
		return c.over(ctx, at, sendlog.Move{To: sendlog.Cancelled, Why: "the campaign was cancelled"})
	case one.State != api.CampaignSending && one.State != api.CampaignSent:
		return outbox.Turn{Until: c.opts.Now().Add(pausedAgain), Reason: "its campaign is paused or held"}, nil
	}
	// before a later run is looked at
	if err := c.Log.Reopened(ctx, at.run, at.chunk, at.offset); err != nil {
		return outbox.Turn{}, err
	}
	switch taken, err := c.resent(ctx, one, at); {
	case taken: // the later run gives the person back, because the message is deferred
		return outbox.Turn{Until: c.opts.Now().Add(pausedAgain), Reason: err.Error()}, nil
	case err != nil:
		return outbox.Turn{}, err
	}
	if one.State == api.CampaignSent || one.key() != at.run {
		return outbox.Turn{}, nil // its run has ended: an operator replays the message as it is stored
	}
	s := c.scheduler.of(one.id)
	if s == nil || s.key != one.key() || s.c.Permission != one.Permission {
		if s, err = c.newScan(ctx, one); err != nil {
			return outbox.Turn{}, err
		}
	}
	return c.turnOf(ctx, s, at)
}

// turnOf is Turn for the run of a scan.
func (c *Campaigns) turnOf(ctx context.Context, s *scan, at *recipient) (outbox.Turn, error) {
	now := c.opts.Now()
	due, again, err := c.reread(ctx, s, at.chunk, []uint32{at.ordinal})
	if err != nil {
		return outbox.Turn{}, err
	}
	if s.c.Window != nil && s.c.Window.Of != "recipient" {
		again = s.window.Next(now, s.zone)
	}
	switch {
	case len(due) == 0 && again.IsZero():
		return c.over(ctx, at, sendlog.Move{To: sendlog.Failed,
			Why: "the campaign is not for the person any more"})
	case len(due) > 0 && due[0].Left:
		move, _ := s.stops(due[0], nil)
		return c.over(ctx, at, move)
	case again.After(now):
		return outbox.Turn{Until: again, Reason: "its window is closed"}, nil
	}
	a, err := c.addressee(s, due[0])
	return s.mailingOf(at.ordinal).Turn(a), err
}

// over settles a deferred person whom the campaign does not go to any more.
func (c *Campaigns) over(ctx context.Context, at *recipient, move sendlog.Move) (outbox.Turn, error) {
	move.Offset = at.offset
	return outbox.Turn{Over: true, Reason: move.Why}, c.Log.Ended(ctx, at.run, at.chunk, move)
}
