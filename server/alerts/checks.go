package alerts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/webhooks"
)

const (
	near       = 0.9 // share of a limit: the team is alerted before new mail is refused
	fewFailed  = 10  // failures within an hour are too few to judge by their share
	namedAtMax = 5   // accounts in a text

	ratesFor      = 24 * time.Hour
	fewBounces    = 10 // fewer are too few to judge by their share
	fewComplaints = 3
)

// check measures something, and returns a finding for each alert about it, wrong or not.
type check func(context.Context, time.Time) ([]finding, error)

// each returns a check that judges one answer.
func each[T any](ask func(context.Context) (T, error), judge func(T) finding) check {
	return func(ctx context.Context, _ time.Time) ([]finding, error) {
		got, err := ask(ctx)
		if err != nil {
			return nil, err
		}
		return []finding{judge(got)}, nil
	}
}

// some returns the finding that there are n of what there should be none of.
func some(alert string, n int, format string, args ...any) finding {
	return finding{alert: alert, wrong: n > 0, value: float64(n), threshold: 1,
		text: fmt.Sprintf(format, args...)}
}

// findings returns the findings of every check. A check that fails has none, which is logged once.
func (w *Watch) findings(ctx context.Context, now time.Time) []finding {
	var all []finding
	failed := map[string]bool{}
	for _, one := range []struct {
		name string
		ask  check
	}{
		{"queues", w.askQueues}, {"mail", w.askMail}, {"rates", w.askRates}, {"relays", w.askRelays},
		{"accounts", each(w.parts.Troubled, judgeAccounts)}, {"records", w.askRecords},
		{"memory of redis", w.askMemory}, {"evicted keys", each(w.parts.Evicted, judgeEvicted)},
		{"durability of redis", each(w.parts.Durability, judgeDurability)}, {"audit log", w.askAudit},
		{"campaigns", each(w.parts.Held, judgeCampaigns)}, {"digests", w.askDigests}, {"webhooks", w.askWebhooks},
	} {
		found, err := one.ask(ctx, now)
		all = append(all, found...)
		if err != nil {
			failed[one.name] = true
			if !w.unjudged[one.name] {
				w.log.WarnContext(ctx, "no alert can be raised about something that can't be asked", "what", one.name,
					"error", err)
			}
		}
	}
	w.unjudged = failed
	return all
}

func (w *Watch) askQueues(ctx context.Context, now time.Time) ([]finding, error) {
	var all []finding
	for _, q := range w.opts.Queues {
		counts, err := w.parts.Counts(ctx, q.Parts...)
		if err != nil {
			return all, err
		}
		if q.Age > 0 {
			all = append(all, judgeAge(q, counts))
		}
		if w.opts.Paused > 0 {
			all = append(all, judgePause(q.Name, counts, w.opts.Paused, now))
		}
	}
	return all, nil
}

// judgeAge judges the age of the oldest due work of a queue. Paused queues do not count.
func judgeAge(q Queue, counts []queue.Counts) finding {
	var oldest time.Duration
	active := 0
	for _, c := range counts {
		active += c.Active
		if !c.Paused {
			oldest = max(oldest, c.Latency)
		}
	}
	why := "No job is being processed. Check that a process with role worker runs and has free workers."
	if active > 0 {
		why = "Workers can't keep up, or the servers that they connect to are slow. Run postroom queue."
	}
	return finding{
		alert: queueAge, queue: q.Name, wrong: oldest >= q.Age, value: oldest.Seconds(), threshold: q.Age.Seconds(),
		text: fmt.Sprintf("The oldest due job in queue %s has waited for %s. %s", q.Name,
			oldest.Truncate(time.Second), why),
	}
}

// judgePause judges the pause of a queue. A pause without a known beginning does not count.
func judgePause(name string, counts []queue.Counts, most time.Duration, now time.Time) finding {
	var longest time.Duration
	for _, c := range counts {
		if c.Paused && !c.PausedAt.IsZero() {
			longest = max(longest, now.Sub(c.PausedAt))
		}
	}
	return finding{
		alert: queuePaused, queue: name, wrong: longest >= most, value: longest.Seconds(),
		threshold: most.Seconds(),
		text: fmt.Sprintf("Queue %s has been paused for %s. To continue, run postroom queue resume %s.", name,
			longest.Truncate(time.Second), name),
	}
}

// mailEvery is the interval at which mail is counted: the counts of an hour change slowly, and adding them up
// reads some thousand numbers.
const mailEvery = time.Minute

func (w *Watch) askMail(ctx context.Context, now time.Time) ([]finding, error) {
	if now.Sub(w.counted).Abs() < min(mailEvery, 4*w.opts.Every) {
		return nil, nil
	}
	w.counted = now
	c, err := w.parts.Counters(ctx, api.CounterQuery{})
	if err != nil {
		return nil, err
	}
	var all []finding
	if w.opts.DeadLetters > 0 || w.opts.FailedShare > 0 {
		all = append(all, judgeFailures(c, w.opts.DeadLetters, w.opts.FailedShare))
	}
	if w.opts.MaxLive > 0 {
		all = append(all, judgeLive(c.Pending, w.opts.MaxLive))
	}
	return all, nil
}

// askRates judges the mail of a day through each gateway; without gateways, all mail.
func (w *Watch) askRates(ctx context.Context, now time.Time) ([]finding, error) {
	if now.Sub(w.rated).Abs() < min(mailEvery, 4*w.opts.Every) {
		return nil, nil
	}
	w.rated = now
	got, err := w.parts.Rates(ctx, api.RatesQuery{From: now.Add(-ratesFor), By: "gateway"})
	if err != nil {
		return nil, err
	}
	w.metrics.forget()
	if len(got.Rates) == 0 { // accounts have their own relays
		if got, err = w.parts.Rates(ctx, api.RatesQuery{From: now.Add(-ratesFor)}); err != nil {
			return nil, err
		}
	}
	var all []finding
	for _, r := range got.Rates {
		w.metrics.gateways.WithLabelValues(r.Name, "bounce").Set(r.BounceRate)
		w.metrics.gateways.WithLabelValues(r.Name, "complaint").Set(r.ComplaintRate)
		for _, f := range []finding{
			judgeRate(bounceRate, r.Name, r.Hard, fewBounces, r.Sent, w.opts.BounceRate),
			judgeRate(complaintRate, r.Name, r.Complained, fewComplaints, r.Sent, w.opts.ComplaintRate),
		} {
			if f.threshold > 0 {
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// judgeRate judges how many of the recipients that a gateway sent to bounced or complained.
func judgeRate(alert, gateway string, n, few, sent int, most float64) finding {
	f := finding{alert: alert, queue: gateway, threshold: most}
	if sent > 0 {
		f.value = float64(n) / float64(sent)
	}
	f.wrong = n >= few && f.value >= most
	through := "gateway " + gateway
	if gateway == "" {
		through = "all relays"
	}
	f.text = fmt.Sprintf("In a day, %d of %d recipients of messages through %s %s, %.2f %%. "+
		"Providers block senders with such a rate. "+
		"Find the messages with postroom rates --by tag.", n, sent, through, map[string]string{
		bounceRate: "had invalid addresses", complaintRate: "complained"}[alert], 100*f.value)
	return f
}

// askRelays judges the relays that do not answer this process, and relays with an alert. If another process
// can't reach one of these, its finding keeps the alert.
func (w *Watch) askRelays(_ context.Context, now time.Time) ([]finding, error) {
	if w.opts.RelayAway <= 0 {
		return nil, nil
	}
	var all []finding
	found := map[string]bool{}
	for _, a := range w.parts.Away() {
		f := judgeRelay(a.Scope, now.Sub(a.Since), w.opts.RelayAway)
		found[f.key()] = true
		all = append(all, f)
	}
	for key, e := range w.standing {
		if e.Alert.Alert == relayAway && !found[key] {
			all = append(all, judgeRelay(e.Queue, 0, w.opts.RelayAway))
		}
	}
	return all, nil
}

func judgeRelay(scope string, away, most time.Duration) finding {
	name, verify := "Gateway ", "postroom gateway verify "
	kind, id, _ := strings.Cut(scope, ":")
	if kind == "relay" {
		name, verify = "The relay of account ", "postroom account verify "
	}
	return finding{
		alert: relayAway, queue: scope, wrong: away >= most, value: away.Seconds(), threshold: most.Seconds(),
		text: fmt.Sprintf("%s%s hasn't responded for %s. Its messages wait, or go through another relay. Test it with %s%s.",
			name, id, away.Truncate(time.Second), verify, id),
	}
}

// judgeFailures judges the failures of the last hour, by their number and by their share. The finding is
// about the one beyond its threshold.
func judgeFailures(c api.Counters, most int, mostShare float64) finding {
	f := finding{alert: mailFails, value: float64(c.FailedHour), threshold: float64(most)}
	share := 0.0
	if ended := c.SentHour + c.FailedHour; ended > 0 {
		share = float64(c.FailedHour) / float64(ended)
	}
	f.wrong = most > 0 && c.FailedHour >= most
	if byShare := mostShare > 0 && c.FailedHour >= fewFailed && share >= mostShare; byShare && !f.wrong ||
		most == 0 {
		f.wrong, f.value, f.threshold = byShare, share, mostShare
	}
	f.text = fmt.Sprintf("%d messages failed permanently in the last hour, %.0f %% of the finished messages. Show the reasons with postroom outbox list --state failed, "+
		"and replay them with postroom dead-letter replay.", c.FailedHour, 100*share)
	return f
}

func judgeLive(live, most int) finding {
	return finding{
		alert: outboxFull, wrong: float64(live) >= near*float64(most), value: float64(live),
		threshold: near * float64(most),
		text: fmt.Sprintf("The outbox holds %d unsent messages. From %d on, new messages are refused "+
			"(outbox.maxLive). "+
			"Run postroom queue to see why they wait.", live, most),
	}
}

func judgeAccounts(ids []string) finding {
	return some(accountTrouble, len(ids), "Messages of these accounts aren't sent, because their login, "+
		"token, certificate or sender is refused: %s. Show the reason with postroom account list, and correct the accounts.", first(ids))
}

func judgeCampaigns(held []string) finding {
	return some(campaignHeld, len(held), "Postroom held these campaigns: %s. Show the reason with postroom campaign "+
		"show ID. Then resume them with postroom campaign resume ID, or cancel them.", first(held))
}

// askDigests judges how late digests are. The time of a pause that this process saw does not count: after it,
// workers have as long as at any time.
func (w *Watch) askDigests(ctx context.Context, now time.Time) ([]finding, error) {
	if w.opts.DigestsLate <= 0 {
		return nil, nil
	}
	counts, err := w.parts.Counts(ctx, queue.Digests)
	if err != nil {
		return nil, err
	}
	late, err := w.parts.Late(ctx)
	if err != nil {
		return nil, err
	}
	if counts[0].Paused {
		w.rested = now
	}
	return []finding{judgeDigests(min(late, now.Sub(w.rested)), w.opts.DigestsLate)}, nil
}

func judgeDigests(late, most time.Duration) finding {
	return finding{
		alert: digestsLate, wrong: late >= most, value: late.Seconds(), threshold: most.Seconds(),
		text: fmt.Sprintf("The oldest due digest is %s late. Check that a process with role worker runs. "+
			"If it does, look in its log, or raise workers.digests.",
			late.Truncate(time.Second)),
	}
}

// askWebhooks judges the endpoints without a success, and endpoints that Postroom switched off.
func (w *Watch) askWebhooks(ctx context.Context, _ time.Time) ([]finding, error) {
	failing, err := w.parts.Failing(ctx)
	if err != nil {
		return nil, err
	}
	all := []finding{judgeOff(failing)}
	if w.opts.WebhookFailing > 0 {
		all = append(all, judgeWebhooks(failing, w.opts.WebhookFailing))
	}
	return all, nil
}

func judgeOff(failing []webhooks.Failure) finding {
	var off []string
	for _, f := range failing {
		if f.Off != "" {
			off = append(off, fmt.Sprintf("%s (%s)", f.Endpoint, f.Off))
		}
	}
	return some(webhookOff, len(off), "Postroom disabled these webhook endpoints, so they get no events: "+
		"%s. Fix the receiver, enable it with postroom webhook update ID --on, and replay the missed events with postroom api replayEndpoint ID --since TIME --background.", first(off))
}

// judgeWebhooks judges from the first to the last failed attempt: one event that an endpoint refused does not
// count for longer because no other came.
func judgeWebhooks(failing []webhooks.Failure, most time.Duration) finding {
	var ids []string
	var longest time.Duration
	for _, f := range failing {
		if f.Off != "" {
			continue
		}
		failed := f.Last.Sub(f.Since)
		if longest = max(longest, failed); failed >= most {
			ids = append(ids, f.Endpoint)
		}
	}
	return finding{
		alert: webhookFailing, wrong: len(ids) > 0, value: longest.Seconds(), threshold: most.Seconds(),
		text: fmt.Sprintf("These webhook endpoints have failed for up to %s: %s. Postroom drops their "+
			"events after webhooks.attempts. Show the responses with postroom webhook deliveries ID.",
			longest.Truncate(time.Second), first(ids)),
	}
}

// first names the first of many.
func first(names []string) string {
	named := strings.Join(names[:min(len(names), namedAtMax)], ", ")
	if more := len(names) - namedAtMax; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named
}
