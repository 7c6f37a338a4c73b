package newsletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/schedule"
)

// mostAhead is how far ahead a campaign may be scheduled.
const mostAhead = 5 * 366 * 24 * time.Hour

// mostPast is how far in the past a requested time may be; then it means now.
const mostPast = 5 * time.Minute

// Send begins a run, now or at a time. If the campaign was sent or is being sent, it changes nothing. It
// returns Unprocessable, code CampaignRefused, with the errors that Check finds in its details.
func (c *Campaigns) Send(ctx context.Context, bound, id string, s api.CampaignStart) (api.CampaignRun,
	error) {
	one, err := c.find(ctx, bound, id)
	if err != nil {
		return api.CampaignRun{}, err
	}
	at, err := c.startAt(one, s.At)
	if err != nil {
		return api.CampaignRun{}, err
	}
	switch one.State {
	case api.CampaignDraft, api.CampaignScheduled:
	case api.CampaignCancelled, api.CampaignFailed:
		return api.CampaignRun{}, wrongState(&one.stored, "send it. Copy it instead")
	default:
		return ran(one), nil
	}
	one.Token, one.TokenQuota = s.Token, s.TokenQuota
	if err := c.ready(ctx, bound, one, at); err != nil {
		return api.CampaignRun{}, err
	}
	if at.After(c.opts.Now()) {
		return c.plan(ctx, one, at)
	}
	return c.begin(ctx, one, api.CampaignResend{})
}

// startAt reads when a campaign begins; zero means now.
func (c *Campaigns) startAt(one *campaign, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	zone := time.UTC
	if one.TZ != "" {
		zone, _ = schedule.Zone(one.TZ) // checked when it was stored
	}
	at, err := schedule.At(text, zone)
	now := c.opts.Now()
	switch {
	case err != nil:
	case at.After(now.Add(mostAhead)):
		err = errors.New("must be at most 5 years ahead")
	case at.Before(now.Add(-mostPast)):
		err = fmt.Errorf("is in the past: %s", at.Format(time.RFC3339))
	}
	if err != nil {
		return at, fault.InvalidField("at", "%s", err)
	}
	return at, nil
}

// ready returns why a caller can't start a campaign at a time, see refused. The campaign is bound from then
// on if the caller is.
func (c *Campaigns) ready(ctx context.Context, bound string, one *campaign, at time.Time) error {
	one.Bound = one.Bound || bound != ""
	if err := c.mayName(ctx, one.Campaign, one.Bound); err != nil {
		return err
	}
	return c.refused(ctx, one, at)
}

// refused returns the errors of a campaign that begins at a time (zero means now), or nil.
func (c *Campaigns) refused(ctx context.Context, one *campaign, at time.Time) error {
	e := precheck{campaigns: c, one: one, at: at}
	if err := e.run(ctx); err != nil || e.result.OK {
		return err
	}
	check := e.result
	texts := make([]string, len(check.Faults))
	for i, f := range check.Faults {
		texts[i] = f.Message
	}
	f := fault.New(fault.Unprocessable, "CampaignRefused", "Campaign %q can't be sent: %s", one.id,
		strings.Join(texts, "; "))
	f.Details = map[string]any{"faults": check.Faults}
	return f
}

// ran returns a campaign as the answer of a verb.
func ran(one *campaign) api.CampaignRun {
	return api.CampaignRun{Campaign: one.id, State: one.State, Run: len(one.Runs), At: one.At}
}

// enliven adds a campaign to the dispatchers' set. It runs before the change of state, so that a crash leaves
// no campaign unseen, and after it, because a dispatcher may remove the campaign in between.
func (c *Campaigns) enliven(ctx context.Context, id string) error {
	return redisdb.Failed(c.DB.Client().SAdd(ctx, liveKey(), id).Err(), "list campaign %s", id)
}

// plan schedules a campaign as it was read, or moves its time.
func (c *Campaigns) plan(ctx context.Context, before *campaign, at time.Time) (api.CampaignRun, error) {
	id := before.id
	if err := c.enliven(ctx, id); err != nil {
		return api.CampaignRun{}, err
	}
	one, err := c.change(ctx, "", id, func(s *stored) error {
		if s.State != api.CampaignDraft && s.State != api.CampaignScheduled {
			return wrongState(s, "schedule it")
		}
		s.State, s.At, s.Bound = api.CampaignScheduled, &at, s.Bound || before.Bound
		s.Permission++ // whoever saw the time before does nothing about it
		s.Token, s.TokenQuota = before.Token, before.TokenQuota
		return nil
	})
	if err != nil {
		return api.CampaignRun{}, err
	}
	return ran(one), c.enliven(ctx, id)
}

// begin starts a run of a campaign as it was read. If its state has changed since, nothing starts: another
// caller was first, and begin returns that run.
func (c *Campaigns) begin(ctx context.Context, before *campaign, again api.CampaignResend) (api.CampaignRun,
	error) {
	id := before.id
	if err := c.enliven(ctx, id); err != nil {
		return api.CampaignRun{}, err
	}
	end, err := c.Audience.End(ctx, before.Account)
	if err != nil {
		return api.CampaignRun{}, err
	}
	next := before.stored
	run := sending{End: end, To: again.To, Subject: again.Subject}
	if last := before.run(); last != nil {
		run.Winner, run.Decided = last.Winner, last.Decided
	}
	next.Runs = append(next.Runs[:len(next.Runs):len(next.Runs)], run)
	run.Snapshots, err = c.save(ctx, &next, run.Subject)
	if err != nil {
		return api.CampaignRun{}, err
	}
	now := c.opts.Now().UTC().Truncate(time.Millisecond)
	one, err := c.change(ctx, "", id, func(s *stored) error {
		if len(s.Runs) != len(before.Runs) || s.State != before.State {
			return errSame // another caller was first
		}
		if err := outdated(s, &before.Version); err != nil { // its mailings would have the content of before
			return err
		}
		s.State, s.At, s.Reason, s.Detail = api.CampaignSending, nil, "", ""
		run.Began = now
		s.Runs, s.Bound = append(s.Runs, run), s.Bound || before.Bound
		s.Token, s.TokenQuota = before.Token, before.TokenQuota
		s.Permission++
		s.tell(event.CampaignStarted, now)
		return nil
	})
	if err == nil {
		err = c.enliven(ctx, id)
	}
	return c.turned(ctx, id, one, err)
}

// turned answers a verb that changed a state. With errSame the state was what the caller wants: the
// permission may not be set yet, but whoever changed the state emits its events.
func (c *Campaigns) turned(ctx context.Context, id string, one *campaign, err error) (api.CampaignRun,
	error) {
	if errors.Is(err, errSame) {
		if one, err = c.find(ctx, "", id); err == nil {
			return ran(one), c.setPermission(ctx, one)
		}
	}
	if err != nil {
		return api.CampaignRun{}, err
	}
	err = c.settled(ctx, one)
	c.live.Wake()
	return ran(one), err
}

// saveAgain stores a run's content again, after it was changed.
func (c *Campaigns) saveAgain(ctx context.Context, one *campaign) (*campaign, error) {
	snapshots, err := c.save(ctx, &one.stored, one.run().Subject)
	if err != nil {
		return nil, err
	}
	return c.change(ctx, "", one.id, func(s *stored) error {
		if s.State == api.CampaignSending || ended(s.State) {
			return wrongState(s, "change it. Pause it first, or copy it")
		}
		s.Runs[len(s.Runs)-1].Snapshots = snapshots
		return outdated(s, &one.Version) // a later change stores its own
	})
}

// settled makes the permission of a campaign what its state says, and emits its events.
func (c *Campaigns) settled(ctx context.Context, one *campaign) error {
	if err := c.setPermission(ctx, one); err != nil {
		return err
	}
	c.scheduler.wake()
	return c.emit(ctx, one)
}

// setPermission makes the permission of a campaign what its state says.
func (c *Campaigns) setPermission(ctx context.Context, one *campaign) error {
	if one.run() == nil {
		return nil
	}
	if one.State == api.CampaignSending {
		return c.Log.Allow(ctx, one.key(), one.Permission)
	}
	return c.Log.Deny(ctx, one.key(), one.Permission)
}

// Pause stops a run. When it has returned, no attempt begins, and a first one does not reach its final dot.
func (c *Campaigns) Pause(ctx context.Context, bound, id string) (api.CampaignRun, error) {
	return c.transition(ctx, bound, id, 0, api.CampaignPaused, "", "", "pause it", api.CampaignSending,
		api.CampaignHeld)
}

// Resume resumes a run that is paused or held.
func (c *Campaigns) Resume(ctx context.Context, bound, id string) (api.CampaignRun, error) {
	one, err := c.find(ctx, bound, id)
	if err == nil && one.State == api.CampaignHeld && one.run() == nil { // it came too late
		if err := c.ready(ctx, bound, one, time.Time{}); err != nil {
			return api.CampaignRun{}, err
		}
		return c.begin(ctx, one, api.CampaignResend{})
	}
	if err == nil {
		err = c.mayName(ctx, one.Campaign, one.Bound || bound != "")
	}
	if err != nil {
		return api.CampaignRun{}, err
	}
	if one.run() != nil && (one.State == api.CampaignPaused || one.State == api.CampaignHeld) &&
		slices.ContainsFunc(contentsOf(one.Campaign), func(in api.Campaign) bool { return in.Template != "" }) {
		// the template may have been edited; if it can't be used any more, the content stays as it was
		if _, err := c.saveAgain(ctx, one); fault.Is(err, fault.Unavailable) {
			return api.CampaignRun{}, err
		}
	}
	return c.transition(ctx, bound, id, 0, api.CampaignSending, "", "", "resume it", api.CampaignPaused,
		api.CampaignHeld)
}

// Cancel ends a campaign: people who haven't received it won't. The dispatcher cancels deferred people's
// messages.
func (c *Campaigns) Cancel(ctx context.Context, bound, id string) (api.CampaignRun, error) {
	return c.transition(ctx, bound, id, 0, api.CampaignCancelled, "", "", "cancel it", api.CampaignDraft,
		api.CampaignScheduled, api.CampaignSending, api.CampaignPaused, api.CampaignHeld)
}

// hold stops a run because of its results.
func (c *Campaigns) hold(ctx context.Context, one *campaign, reason, detail string) {
	run, err := c.transition(ctx, "", one.id, one.Permission, api.CampaignHeld, reason, detail, "hold it",
		api.CampaignSending, api.CampaignScheduled)
	switch {
	case err != nil:
		c.log.WarnContext(ctx, "holding a campaign failed; "+
			"retrying", "campaign", one.id, "reason", reason, "error",
			err)
	case run.State == api.CampaignHeld:
		c.log.WarnContext(ctx, "campaign held: continue it with postroom campaign resume", "campaign", one.id,
			"reason", reason, "detail", detail)
	}
}

// transition changes the state of a campaign from one of some. A campaign that has the state stays as it is,
// and so does one whose permission is another than the caller looked at: it was resumed since, or begun
// again. 0 means any.
func (c *Campaigns) transition(ctx context.Context, bound, id string, permission int, to, reason, detail,
	what string, from ...string) (api.CampaignRun, error) {
	one, err := c.change(ctx, bound, id, func(s *stored) error {
		if s.State == to || permission != 0 && s.Permission != permission {
			return errSame
		}
		if !slices.Contains(from, s.State) {
			return wrongState(s, what)
		}
		now := c.opts.Now().UTC().Truncate(time.Millisecond)
		if s.State == api.CampaignHeld && len(s.Runs) > 0 {
			run := &s.Runs[len(s.Runs)-1]
			run.Forgiven = append(run.Forgiven, s.Reason)
		}
		s.State, s.Reason, s.Detail, s.At = to, reason, detail, nil
		s.Bound = s.Bound || bound != "" && to == api.CampaignSending
		s.Permission++
		if ended(to) && len(s.Runs) > 0 {
			s.Runs[len(s.Runs)-1].Ended, s.Runs[len(s.Runs)-1].Sent = &now, to == api.CampaignSent
		}
		if kind := eventOf(to); kind != "" && (len(s.Runs) > 0 || to == api.CampaignHeld ||
			to == api.CampaignFailed) {
			s.tell(kind, now) // also of one that could not be begun
		}
		return nil
	})
	return c.turned(ctx, id, one, err)
}

// eventOf returns the event about a new state; empty if there is none.
func eventOf(state string) event.Type {
	switch state {
	case api.CampaignPaused:
		return event.CampaignPaused
	case api.CampaignHeld:
		return event.CampaignHeld
	case api.CampaignSent, api.CampaignCancelled, api.CampaignFailed:
		return event.CampaignFinished
	}
	return ""
}

// mostRuns bounds the runs of a campaign: each is looked at for each person of the next.
const mostRuns = 50
