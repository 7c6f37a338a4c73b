package alerts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
)

// The alerts. docs/playbooks.md has what to do.
const (
	queueAge       = "queueAge"
	queuePaused    = "queuePaused"
	mailFails      = "mailFails"
	accountTrouble = "accountTrouble"
	outboxFull     = "outboxFull"
	redisMemory    = "redisMemory"
	redisEvicts    = "redisEvicts"
	redisForgets   = "redisForgets"
	redisAway      = "redisAway"
	relayAway      = "relayAway"
	recordsRefused = "recordsRefused"
	bounceRate     = "bounceRate"
	complaintRate  = "complaintRate"
	auditBroken    = "auditBroken"
	campaignHeld   = "campaignHeld"
	digestsLate    = "digestsLate"
	webhookFailing = "webhookFailing"
	webhookOff     = "webhookOff"
)

// names are all alerts.
var names = []string{queueAge, queuePaused, mailFails, accountTrouble, outboxFull, redisMemory, redisEvicts,
	redisForgets, redisAway, relayAway, recordsRefused, bounceRate, complaintRate, auditBroken,
	campaignHeld, digestsLate, webhookFailing, webhookOff}

const (
	near       = 0.9 // of a limit: the team is alerted before new mail is refused
	fewFailed  = 10  // failures within an hour are too few to judge by their share
	namedAtMax = 5   // accounts in a text

	ratesFor      = 24 * time.Hour
	fewBounces    = 10 // fewer are too few to judge by their share
	fewComplaints = 3
)

// findings returns the findings of every source. A source that fails has none, which is logged once.
func (w *Watch) findings(ctx context.Context, now time.Time) []finding {
	var all []finding
	failed := map[string]bool{}
	for _, source := range []struct {
		name string
		ask  func(context.Context, time.Time) ([]finding, error)
	}{
		{"queues", w.askQueues}, {"mail", w.askMail}, {"rates", w.askRates}, {"relays", w.askRelays},
		{"accounts", w.askAccounts}, {"records", w.askRecords},
		{"memory of redis", w.askMemory}, {"evicted keys", w.askEvicted}, {"durability of redis", w.askDurability},
		{"audit log", w.askAudit}, {"campaigns", w.askCampaigns}, {"digests", w.askDigests},
		{"webhooks", w.askWebhooks},
	} {
		found, err := source.ask(ctx, now)
		all = append(all, found...)
		if err != nil {
			failed[source.name] = true
			if !w.unjudged[source.name] {
				w.log.WarnContext(ctx, "no alert can be raised about something that can't be asked", "what", source.name,
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
		counts, err := w.counts(ctx, q.Parts...)
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
	why := "Nothing is being worked on: does a process with role worker run, and has it room?"
	if active > 0 {
		why = "Workers are at it, and can't keep up, or what they talk to is slow: see postroom queue."
	}
	return finding{
		alert: queueAge, queue: q.Name, wrong: oldest >= q.Age, value: oldest.Seconds(), threshold: q.Age.Seconds(),
		text: fmt.Sprintf("The oldest of what is due in queue %s has waited for %s. %s", q.Name,
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
		text: fmt.Sprintf("Queue %s has been paused for %s. If that is over: postroom queue resume %s.", name,
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
	c, err := w.counters(ctx, api.CounterQuery{})
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
	got, err := w.rates(ctx, api.RatesQuery{From: now.Add(-ratesFor), By: "gateway"})
	if err != nil {
		return nil, err
	}
	w.metrics.forget()
	if len(got.Rates) == 0 { // accounts have relays of their own
		if got, err = w.rates(ctx, api.RatesQuery{From: now.Add(-ratesFor)}); err != nil {
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
	f.text = fmt.Sprintf("Of %d recipients mailed through %s within a day, %d %s, %.2f %%. "+
		"Providers stop senders who go on like this. "+
		"See whose mail it is with postroom rates --by tag.", sent, through, n, map[string]string{
		bounceRate: "have dead addresses", complaintRate: "complained"}[alert], 100*f.value)
	return f
}

// askRelays judges the relays that do not answer this process, and those that have an alert. If another
// process can't reach one of these, its finding keeps the alert.
func (w *Watch) askRelays(_ context.Context, now time.Time) ([]finding, error) {
	if w.opts.RelayAway <= 0 {
		return nil, nil
	}
	var all []finding
	found := map[string]bool{}
	for _, a := range w.away() {
		f := judgeRelay(a.Scope, now.Sub(a.Since), w.opts.RelayAway)
		found[f.key()] = true
		all = append(all, f)
	}
	for key, e := range w.standing {
		if e.state.Alert == relayAway && !found[key] {
			all = append(all, judgeRelay(e.state.Queue, 0, w.opts.RelayAway))
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
		text: fmt.Sprintf("%s%s has not answered for %s. Its mail waits, or goes over another one. See what it says with %s%s.",
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
	f.text = fmt.Sprintf("%d messages failed for good within the last hour, %.0f %% of those that ended. See why with postroom outbox list --state failed, "+
		"and send them again with postroom dead-letter replay.", c.FailedHour, 100*share)
	return f
}

func judgeLive(live, most int) finding {
	return finding{
		alert: outboxFull, wrong: float64(live) >= near*float64(most), value: float64(live),
		threshold: near * float64(most),
		text: fmt.Sprintf("The outbox holds %d messages that are not sent yet; from %d on new mail is refused (outbox.maxLive). "+
			"See why they wait with postroom queue.", live, most),
	}
}

func (w *Watch) askAccounts(ctx context.Context, _ time.Time) ([]finding, error) {
	ids, err := w.troubled(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{judgeAccounts(ids)}, nil
}

func judgeAccounts(ids []string) finding {
	return finding{
		alert: accountTrouble, wrong: len(ids) > 0, value: float64(len(ids)), threshold: 1,
		text: fmt.Sprintf("Mail of these accounts does not get through, because their login, token, certificate or sender is refused: %s. "+
			"See why with postroom account list, and correct them.", some(ids)),
	}
}

func (w *Watch) askCampaigns(ctx context.Context, _ time.Time) ([]finding, error) {
	held, err := w.held(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{{
		alert: campaignHeld, wrong: len(held) > 0, value: float64(len(held)), threshold: 1,
		text: fmt.Sprintf("These campaigns stopped by themselves: %s. See why with postroom campaign show ID, and go on "+
			"with postroom campaign resume ID, or cancel them.", some(held)),
	}}, nil
}

// refusedFor is how long a refused record counts after it was last read. Mail that waits for an account reads
// that more often.
const refusedFor = time.Hour

func (w *Watch) askRecords(_ context.Context, now time.Time) ([]finding, error) {
	for _, name := range w.refused() {
		w.refusals[name] = now
	}
	maps.DeleteFunc(w.refusals, func(_ string, at time.Time) bool { return now.Sub(at) >= refusedFor })
	return []finding{judgeRecords(slices.Sorted(maps.Keys(w.refusals)))}, nil
}

func judgeRecords(names []string) finding {
	return finding{
		alert: recordsRefused, wrong: len(names) > 0, value: float64(len(names)), threshold: 1,
		text: fmt.Sprintf("These records in Redis are refused, because they are not as Postroom wrote them, or the secret of this instance was changed: %s. "+
			"The log says how. Find out who writes to Redis; enter secrets again, and delete tokens you did not make.",
			some(names)),
	}
}

// some names the first of many.
func some(names []string) string {
	named := strings.Join(names[:min(len(names), namedAtMax)], ", ")
	if more := len(names) - namedAtMax; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return named
}

func (w *Watch) askMemory(ctx context.Context, _ time.Time) ([]finding, error) {
	if w.opts.MemoryShare <= 0 {
		return nil, nil
	}
	share, err := w.memoryShare(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{judgeMemory(share, w.opts.MemoryShare)}, nil
}

func judgeMemory(share, most float64) finding {
	then := fmt.Sprintf("From %.0f %% on new mail is refused (redis.maxMemoryShare)", 100*most)
	if share >= most {
		then = "New mail is refused (redis.maxMemoryShare)"
	}
	return finding{
		alert: redisMemory, wrong: share >= near*most, value: share, threshold: near * most,
		text: fmt.Sprintf("Redis uses %.0f %% of its maxmemory. %s. Raise maxmemory, or cancel what need not be sent.", 100*share, then),
	}
}

func (w *Watch) askEvicted(ctx context.Context, _ time.Time) ([]finding, error) {
	n, err := w.evicted(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{{
		alert: redisEvicts, wrong: n > 0, value: float64(n), threshold: 1,
		text: fmt.Sprintf("Redis has thrown away %d keys for want of memory: mail may be lost. Set maxmemory-policy noeviction, compare what was "+
			"submitted with what was sent, and end this alert with redis-cli config resetstat.", n),
	}}, nil
}

func (w *Watch) askDurability(ctx context.Context, _ time.Time) ([]finding, error) {
	d, err := w.durability(ctx)
	if err != nil {
		return nil, err
	}
	return []finding{judgeDurability(d)}, nil
}

func judgeDurability(d redisdb.Durability) finding {
	return finding{
		alert: redisForgets, wrong: len(d.Warnings) > 0, value: float64(len(d.Warnings)), threshold: 1,
		text: strings.Join(d.Warnings, " "),
	}
}

func (w *Watch) askAudit(context.Context, time.Time) ([]finding, error) {
	ok, problem := w.intact()
	return []finding{judgeAudit(ok, problem)}, nil
}

func judgeAudit(ok bool, problem string) finding {
	f := finding{alert: auditBroken, wrong: !ok, threshold: 1, text: fmt.Sprintf(
		"The audit log was tampered with: %s. See all of it with postroom audit --verify.", problem)}
	if !ok {
		f.value = 1
	}
	return f
}

// awayState returns the alert about a failing Redis, by the clock of this process. The cause is only logged:
// it may contain addresses.
func awayState(answers bool, now time.Time) state {
	now = now.UTC().Truncate(time.Millisecond)
	s := state{Alert: redisAway, Value: 1, Threshold: 1, Since: now, Judged: now}
	s.Text = "Redis does not answer: no mail is accepted or sent. Bring it back; see redis.url and the log."
	if answers {
		s.Text = "Redis refuses to write: no mail is accepted or sent. Is its disk or its memory full, or is it a replica? The log has its words."
	}
	return s
}
