package newsletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// pace is how fast mail may go. Zero means none, infinite means unlimited.
type pace struct{ perSecond, perDay float64 }

// paceOf returns the pace that a rate allows.
func paceOf(r limits.Rate) pace {
	bound := func(n float64) float64 {
		if n <= 0 {
			return math.Inf(1)
		}
		return n
	}
	p := pace{perSecond: min(bound(r.PerSecond), bound(r.PerMinute)/60)}
	p.perDay = min(bound(r.PerDay), p.perSecond*secondsOfDay)
	return p
}

const secondsOfDay = 24 * 60 * 60

// plus is the pace of two ways together.
func (p pace) plus(q pace) pace { return pace{p.perSecond + q.perSecond, p.perDay + q.perDay} }

// least is the pace that keeps to both.
func (p pace) least(q pace) pace {
	return pace{min(p.perSecond, q.perSecond), min(p.perDay, q.perDay)}
}

func (p pace) get() (perSecond, perDay float64) { return p.perSecond, p.perDay }

// mostDays bounds what duration looks at.
const mostDays = 366

// duration returns how long mail to some people takes at least, and whether that is at most a year. paceOn
// returns the pace of a day from now.
func duration(people int, paceOn func(day int) (perSecond, perDay float64)) (time.Duration, bool) {
	left := float64(people)
	for day := range mostDays {
		perSecond, perDay := paceOn(day)
		if left <= perDay {
			seconds := left / perSecond // 0 if it is not bounded
			return time.Duration(day)*24*time.Hour + time.Duration(seconds*float64(time.Second)), true
		}
		left -= perDay
	}
	return 0, false
}

// mayTake returns how many people may be claimed for a batch now under the campaign's window, rate and
// limits. If it returns 0, the scan pauses.
func (c *Campaigns) mayTake(ctx context.Context, s *scan, now time.Time) int {
	if s.c.Window != nil && s.c.Window.Of != "recipient" {
		if opens := s.window.Next(now, s.zone); opens.After(now) {
			s.restsFor(earlier(opens, now.Add(time.Minute)), opens, "its window is closed")
			return 0
		}
	}
	most, next, opens, why := s.reservations.due(now)
	if most == 0 {
		s.restsFor(next, opens, why)
		return 0
	}
	if s.c.Rate <= 0 {
		return most
	}
	if err := c.takeTurns(ctx, s, now); err != nil {
		s.rests(now.Add(time.Second), "the limits can't be asked")
		return 0
	}
	if s.paid <= 0 {
		s.rests(s.ahead[0], "its rate")
	}
	return max(0, min(most, s.paid))
}

// turnLength is how much of a campaign's rate goes together: less takes more round trips, more is uneven.
const turnLength = 100 * time.Millisecond

// takeTurns pays for messages that are due, and reserves turns for a second ahead. So the rate is kept even
// if a worker comes late. Each start of a run has its own scope, so it doesn't wait for turns that were
// reserved before a pause, or at another rate.
func (c *Campaigns) takeTurns(ctx context.Context, s *scan, now time.Time) error {
	turn := max(1, int(s.c.Rate*turnLength.Seconds()))
	scope := limits.Scope{Name: fmt.Sprintf("campaign:%s:%d", s.c.id, s.c.Permission),
		Rate: limits.Rate{PerSecond: s.c.Rate, Burst: turn}}
	for {
		for len(s.ahead) > 0 && !s.ahead[0].After(now) {
			s.paid, s.ahead = s.paid+turn, s.ahead[1:]
		}
		if float64(len(s.ahead)*turn) >= s.c.Rate || s.paid >= batchPeople {
			return nil
		}
		answer, err := c.Limits.Reserve(ctx, []limits.Scope{scope}, turn, "")
		if err != nil {
			return err
		}
		if answer.OK {
			answer.At = now
		}
		s.ahead = append(s.ahead, answer.At)
	}
}

// unpaid gives back the payment for messages that were not sent.
func (s *scan) unpaid(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paid += n
}

// reservations are a campaign's in the limits of its account and its relays. Messages that could not wait
// leave them for the next messages. They outlast a pause.
type reservations struct {
	gateway string // that they are for; empty for the account's

	mu  sync.Mutex
	all []reserved // the earliest first
}

type reserved struct {
	at, ask time.Time // its time, and when to ask again: limits may have been raised
	why     string
	had     limits.Reservation
}

// due returns how many people may be sent to soon; if none, when to ask again, when there is room, and why.
func (p *reservations) due(now time.Time) (most int, next, opens time.Time, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		return batchPeople, now, now, ""
	}
	for most < min(len(p.all), batchPeople) && p.all[most].at.Before(now.Add(time.Second)) {
		most++
	}
	if first := p.all[0]; most == 0 && first.ask.After(now) {
		return 0, first.ask, first.at, first.why
	}
	return max(1, most), now, now, ""
}

// take returns the earliest reservation; empty if there is none. keep leaves one.
func (p *reservations) take() limits.Reservation {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) == 0 {
		return ""
	}
	had := p.all[0].had
	p.all = p.all[1:]
	return had
}

func (p *reservations) keep(one reserved) {
	if one.had == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, _ := slices.BinarySearchFunc(p.all, one, func(a, b reserved) int {
		return cmp.Or(a.at.Compare(b.at), -1) // after reservations of the same time
	})
	p.all = slices.Insert(p.all, at, one)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// quotaPause is how long a run waits for room in a quota before it asks again: a quota may be raised.
const quotaPause = 5 * time.Second

// reasonQuota is the reason of a campaign that waits for room in a quota. It resumes automatically.
const reasonQuota = "quota"

// sendWithin sends to as many people as the quotas have room for, and gives back the room for the people it
// didn't try.
func (b *batch) sendWithin(ctx, work context.Context, people []uint32) {
	mailing := b.scan.mailings[0] // all variants have the same account
	room, err := mailing.Reserve(work, len(people))
	if err != nil {
		b.noRoom(ctx, err)
		return
	}
	b.scan.noteQuota("")
	b.sendAll(ctx, work, people[:room.Messages])
	if unsent := room.Messages - int(b.tried.Load()); unsent > 0 {
		b.persist(work, "give back room in a quota", func() error { return mailing.Unreserve(work, room, unsent) })
	}
}

// noRoom makes the scan wait because of a quota that is used up or can't be read.
func (b *batch) noRoom(ctx context.Context, err error) {
	pause, why := time.Second, "the quotas can't be asked"
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind == fault.Limited {
		pause, why = quotaPause, f.Message
		b.scan.noteQuota(why)
		if f.RetryAfter > 0 {
			pause = min(pause, f.RetryAfter)
		}
	} else {
		b.c.log.WarnContext(ctx, "quotas not asked; the batch is given back", "campaign", b.scan.c.id, "error", err)
	}
	b.scan.rest(b.c.opts.Now().Add(pause), why)
}

// noteQuota notes which quota has no room; empty if all have.
func (s *scan) noteQuota(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = &why
}

// showQuota stores in the campaign that a quota keeps it waiting, or does no longer.
func (c *Campaigns) showQuota(ctx context.Context, one *campaign, s *scan) error {
	s.mu.Lock()
	now := s.quota
	s.quota = nil
	s.mu.Unlock()
	if now == nil || *now == one.Detail && (one.Reason == reasonQuota || one.Reason == "") {
		return nil
	}
	_, err := c.change(ctx, "", one.id, func(s *stored) error {
		s.Version--
		if s.State != api.CampaignSending {
			return nil
		}
		if s.Reason, s.Detail = "", *now; *now != "" {
			s.Reason = reasonQuota
		}
		return nil
	})
	return err
}

// waitShown is how long a run sends nothing before the campaign says what it waits for, and how much the time
// may change before it is written again.
const waitShown = 3 * time.Second

// goes notes that an email was tried, so that the run does not wait.
func (s *scan) goes(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.went = now
}

// waits returns what the run waits for, or nil if this process knows of nothing.
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

// waitsFor returns what the remaining people wait for: a test's winner, or their windows. It returns nil if
// some of them can be sent to now, or if none remain. again has the times when the unfinished chunks are
// scanned again.
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

// showWait stores in the campaign why it waits, or that it waits no longer.
func (c *Campaigns) showWait(ctx context.Context, one *campaign, wait *api.CampaignWait) error {
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

// near reports whether two times are close enough to show as one.
func near(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Sub(*b).Abs() <= waitShown
}
