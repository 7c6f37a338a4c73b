package newsletter

import (
	"context"
	"time"

	"github.com/postroom/postroom/api"
)

// waitShown is how long a run mails nobody before the campaign says what it waits for, and how far the time
// may move until that is written again.
const waitShown = 3 * time.Second

// goes notes that a mail was tried, so that the run does not wait.
func (s *scan) goes(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.went = now
}

// waits returns what the run waits for; nil: for nothing that this process knows of.
func (s *scan) waits(now time.Time) *api.CampaignWait {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" || now.Sub(s.went) < waitShown || now.Sub(s.until) > waitShown {
		return nil
	}
	return waitUntil(s.why, s.lifts, now)
}

func waitUntil(reason string, until, now time.Time) *api.CampaignWait {
	wait := &api.CampaignWait{Reason: reason}
	if until.After(now) {
		until = until.UTC().Truncate(time.Second)
		wait.Until = &until
	}
	return wait
}

// waitsFor returns what the people wait for who are still to be mailed: the winner of a test, or their
// windows. again is when the chunks are scanned again that aren't done. Nil: some of them can be mailed now,
// or all were.
func (one *campaign) waitsFor(again []time.Time, now time.Time) *api.CampaignWait {
	var first time.Time
	for _, at := range again {
		if at.IsZero() || !at.After(now) {
			return nil
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	switch {
	case first.IsZero():
		return nil
	case !first.Equal(forWinner):
		return waitUntil("the windows of the recipients are closed", first, now)
	}
	var decides time.Time
	if t := trialOf(one.Campaign); t.metric != byHand && one.run().Tested != nil {
		decides = one.run().Tested.Add(t.wait)
	}
	return waitUntil("the winner of the test is not decided", decides, now)
}

// showWait stores in the campaign what it waits for, or that it waits no longer.
func (c *keeper) showWait(ctx context.Context, one *campaign, wait *api.CampaignWait) error {
	old := one.Waits
	if wait == old || wait != nil && old != nil && wait.Reason == old.Reason && near(wait.Until, old.Until) {
		return nil
	}
	_, err := c.change(ctx, "", one.id, func(s *stored) error {
		s.Version--
		s.Waits = wait
		return nil
	})
	return err
}

// near reports whether two times need not be told apart.
func near(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Sub(*b).Abs() <= waitShown
}
