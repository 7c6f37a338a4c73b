package alerts

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/outbox"
)

const day = 24 * time.Hour

// steps are the steps of the bars, by the days of the period. None has more than 30.
var steps = map[int]time.Duration{1: time.Hour, 7: 6 * time.Hour, 30: day}

// begin returns the begin of a period whose last step is the present one.
func begin(now time.Time, days int, step time.Duration) time.Time {
	return now.Truncate(step).Add(step).Add(-time.Duration(days) * day)
}

// count fills in the bars, their sum, and the rates.
func (o *Overview) count(ctx context.Context, out *api.Overview) error {
	step := steps[out.Days]
	q := api.RatesQuery{Account: out.Account, From: out.From, Step: "hour"}
	if step == day {
		q.Step = "day"
	}
	got, err := o.Rates(ctx, q)
	if err != nil {
		return err
	}
	for at := out.From; at.Before(out.From.Add(time.Duration(out.Days) * day)); at = at.Add(step) {
		out.Bars = append(out.Bars, api.OverviewBar{Time: at})
	}
	sum := &out.Total
	for _, r := range got.Rates {
		i := int(r.Time.Sub(out.From) / step)
		if r.Time.Before(out.From) || i >= len(out.Bars) {
			continue
		}
		b := &out.Bars[i]
		b.Accepted += r.Accepted
		b.Sent += r.Sent
		b.Failed += r.Failed
		b.Bounced += r.Hard + r.Soft + r.Blocked
		add(sum, r)
	}
	if sum.Sent > 0 {
		sum.BounceRate = float64(sum.Hard) / float64(sum.Sent)
		sum.ComplaintRate = float64(sum.Complained) / float64(sum.Sent)
	}
	out.Rates = []api.OverviewRate{
		judged(api.OverviewRate{Kind: "bounces", Events: sum.Hard, Value: sum.BounceRate, High: .02, Limit: .05},
			fewBounces),
		judged(api.OverviewRate{Kind: "complaints", Events: sum.Complained, Value: sum.ComplaintRate, High: .001,
			Limit: .003}, fewComplaints),
	}
	return nil
}

// add adds the numbers of a step to the period's.
func add(sum *api.Rate, r api.Rate) {
	to, by := reflect.ValueOf(sum).Elem(), reflect.ValueOf(r)
	for i := range to.NumField() {
		if n := to.Field(i); n.CanInt() {
			n.SetInt(n.Int() + by.Field(i).Int())
		}
	}
}

// judged fills in the state of a rate.
func judged(r api.OverviewRate, few int) api.OverviewRate {
	switch {
	case r.Value < r.High:
		r.State = "good"
	case r.Events < few:
		r.State = "few"
	case r.Value < r.Limit:
		r.State = "high"
	default:
		r.State = "over"
	}
	return r
}

const (
	lookedAt = 200              // newest messages of a status that are read
	late     = 5 * time.Minute  // how long a message that is due waits at most if mail flows; see Late
	recent   = 10 * time.Minute // mail that was sent since then shows that mail flows
)

// flow fills in whether mail flows.
func (o *Overview) flow(ctx context.Context, out *api.Overview) error {
	f := &out.Flow
	var unsent []api.OutboxMessage
	for _, one := range []struct {
		state api.State
		n     *int
	}{{api.Active, &f.Active}, {api.Scheduled, &f.Scheduled}, {outbox.OnlyDelayed, &f.Delayed},
		{api.Waiting, &f.Waiting}, {api.Paused, &f.Paused}} {
		page, err := o.List(ctx, api.OutboxQuery{State: one.state, Account: out.Account, PageSize: lookedAt})
		if err != nil {
			return err
		}
		*one.n = page.Total
		if one.state == api.Waiting || one.state == api.Paused {
			f.Oldest = older(f.Oldest, page.Messages)
		}
		if one.state == api.Waiting || one.state == outbox.OnlyDelayed {
			unsent = append(unsent, page.Messages...)
		}
	}
	sent, err := o.Messages(ctx, api.LogQuery{Status: api.StatusSent, Account: out.Account,
		CreatedAfter: out.From, PageSize: lookedAt})
	if err != nil {
		return err
	}
	last := relayTimes(f, sent.Messages)
	var paused []string
	for _, t := range out.Troubles { // so far, these are queues
		if lane := map[string]string{"submit": "transactional", "bulk": "bulk"}[t.ID]; lane != "" {
			paused = append(paused, lane)
		}
	}
	o.say(f, out.Time, last, paused)
	return o.sayStuck(ctx, f, unsent, paused)
}

// older returns the older one of the oldest message so far and the first of a list.
func older(so *api.OverviewOldest, first []api.OutboxMessage) *api.OverviewOldest {
	if len(first) == 0 {
		return so
	}
	m := first[0]
	since := m.Created
	for _, due := range []*time.Time{&m.Scheduled, m.NextAttempt.Time} {
		if due != nil && due.After(since) {
			since = *due
		}
	}
	if so != nil && so.Since.Before(since) {
		return so
	}
	return &api.OverviewOldest{QueueID: m.QueueID, Since: since}
}

// relayTimes fills in how long sent messages took, and returns when the last one ended, or zero.
func relayTimes(f *api.OverviewFlow, sent []api.LoggedMessage) (last time.Time) {
	var took []float64
	for _, m := range sent {
		if m.Ended == nil {
			continue
		}
		wanted := m.Created
		if m.Scheduled.After(wanted) {
			wanted = m.Scheduled
		}
		took = append(took, max(0, m.Ended.Sub(wanted).Seconds()))
		if m.Ended.After(last) {
			last = *m.Ended
		}
	}
	if len(took) == 0 {
		return last
	}
	slices.Sort(took)
	share := func(of int) float64 { return took[(len(took)*of+99)/100-1] } // the nearest rank
	f.Relay = &api.OverviewRelayTimes{Messages: len(took), P50: share(50), P95: share(95)}
	return last
}

// say fills in the state and its sentence. last is when a message was last sent.
func (o *Overview) say(f *api.OverviewFlow, now, last time.Time, paused []string) {
	due := f.Waiting + f.Paused
	var waits time.Duration
	if f.Oldest != nil {
		waits = now.Sub(f.Oldest.Since)
	}
	switch {
	case len(paused) > 0:
		f.State = api.FlowPaused
		f.Sentence = fmt.Sprintf("Sending is paused (%s mail): %s.", strings.Join(paused, " and "), waiting(due))
	case f.Paused > 0:
		f.State, f.Sentence = api.FlowPaused, fmt.Sprintf("Sending is paused: %s.", waiting(due))
	case waits >= o.late:
		f.State = api.FlowLate
		f.Sentence = fmt.Sprintf("Messages are late: %s, and the oldest has been due for %s.", waiting(due),
			waits.Truncate(time.Second))
	case !last.IsZero() && now.Sub(last) < recent:
		f.State = api.FlowSending
		f.Sentence = fmt.Sprintf("Messages were sent in the last 10 minutes, and %s.", waiting(due))
	case due > 0:
		f.State = api.FlowIdle
		f.Sentence = fmt.Sprintf("No message was sent in the last 10 minutes, and %s.", waiting(due))
	default:
		f.State, f.Sentence = api.FlowIdle, "No message was sent in the last 10 minutes, and none is due."
	}
	switch f.Delayed {
	case 0:
	case 1:
		f.Sentence += " 1 message is delayed."
	default:
		f.Sentence += fmt.Sprintf(" %d messages are delayed.", f.Delayed)
	}
}

func waiting(n int) string {
	switch n {
	case 0:
		return "no due message is waiting"
	case 1:
		return "1 due message is waiting"
	}
	return fmt.Sprintf("%d due messages are waiting", n)
}

// sayStuck replaces the state and its sentence if no relay of an account takes its mail. unsent are messages
// that are due or delayed, lookedAt of each at most.
func (o *Overview) sayStuck(
	ctx context.Context, f *api.OverviewFlow, unsent []api.OutboxMessage, paused []string,
) error {
	ids, n, err := o.stuck(ctx, unsent)
	if err != nil || n == 0 {
		return err
	}
	f.State = api.FlowStuck
	wait := fmt.Sprintf("%d messages wait", n)
	if n == 1 {
		wait = "1 message waits"
	}
	if f.Waiting+f.Delayed > len(unsent) {
		wait = "at least " + wait
	}
	if len(ids) == 1 {
		f.Sentence = fmt.Sprintf("Messages of account %s are stuck: no relay accepts them, and "+
			"%s.", ids[0], wait)
	} else {
		f.Sentence = fmt.Sprintf("Messages of these accounts are stuck: %s. No relay accepts them, and "+
			"%s.", first(ids), wait)
	}
	if len(paused) > 0 {
		f.Sentence += fmt.Sprintf(" Sending is paused, too (%s mail).", strings.Join(paused, " and "))
	}
	return nil
}

// stuck returns the accounts with mail that no relay takes, and how many of the messages are theirs.
func (o *Overview) stuck(ctx context.Context, unsent []api.OutboxMessage) (ids []string, n int, err error) {
	if len(unsent) == 0 {
		return nil, 0, nil
	}
	gateways, err := o.Gateways(ctx, 0, listed)
	if err != nil {
		return nil, 0, err
	}
	away := map[string]bool{}
	for _, g := range gateways.Gateways {
		away[g.Gateway.Gateway] = isAway(g)
	}
	accounts := map[string]api.AccountInfo{}
	for _, m := range unsent {
		a, known := accounts[m.Account]
		if !known {
			a, err = o.Account(ctx, m.Account)
			if err != nil && !fault.Is(err, fault.NotFound) {
				return nil, 0, err
			}
			accounts[m.Account] = a
		}
		if takenByNone(m, a, away) {
			ids, n = append(ids, m.Account), n+1
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), n, nil
}

// isAway reports whether a gateway took no mail when it was last used.
func isAway(g api.GatewayInfo) bool { return g.State == "error" || g.State == "open" }

// takenByNone reports whether all relays that may take a message are unavailable: its gateway, or its
// account's relays for its lane.
func takenByNone(m api.OutboxMessage, a api.AccountInfo, away map[string]bool) bool {
	switch {
	case m.Gateway != nil: // the one it asked for
		return away[*m.Gateway]
	case a.State == "held":
		return true
	}
	for _, lane := range []api.Lane{m.Lane, ""} {
		var all []bool
		for _, r := range a.Gateways {
			if r.Lane == lane {
				all = append(all, away[r.Gateway])
			}
		}
		if lane == "" && (a.SMTP != nil || len(a.Gateways) == 0) { // its own relay
			all = append(all, a.State == "error")
		}
		if len(all) > 0 {
			return !slices.Contains(all, false)
		}
	}
	return false
}
