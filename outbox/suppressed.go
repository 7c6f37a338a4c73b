package outbox

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/suppression"
)

// rcptSuppressed is a recipient that must not be mailed.
const rcptSuppressed = "suppressed"

// stops says which recipients of a message must not be mailed, by their places in the envelope.
func (b *Outbox) stops(ctx context.Context, e envelope, lane api.Lane, which []int) (map[int]*suppression.Entry, error) {
	if b.Suppressions == nil || len(which) == 0 {
		return nil, nil
	}
	found, err := b.Suppressions.Check(ctx, suppression.Question{
		Account: e.Account, List: e.ListID, Bulk: lane == api.Bulk, Addresses: e.addresses(which),
	})
	if err != nil {
		return nil, err
	}
	stopped := map[int]*suppression.Entry{}
	for n, entry := range found {
		if entry != nil {
			stopped[which[n]] = entry
		}
	}
	return stopped, nil
}

// stopsNow says directly before an attempt, as late as can be, which recipients must not be mailed: who unsubscribes a moment before is not.
// Where the claim of the message says that nobody is, and is not older than a moment, nobody has to be asked.
func (b *Outbox) stopsNow(ctx context.Context, c *claim, which []int) (map[int]*suppression.Entry, error) {
	if c.cleared && b.clock.now().Sub(c.asked) < clearedFor {
		return nil, nil
	}
	return b.stops(ctx, c.envelope, c.lane, which)
}

// clearedFor is how long an attempt goes by what it was told when it began, from the moment when that was asked: the answer may be long on its way,
// and says nothing of what was added meanwhile. Nearly all get to their relay within a millisecond or two.
const clearedFor = 250 * time.Millisecond

// question is what accept.lua is to look at, to know that everybody in a message may be mailed; nil: it can't, or need not.
func (b *Outbox) question(e envelope, lane api.Lane) *suppression.Look {
	if b.Suppressions == nil {
		return nil
	}
	return b.Suppressions.Look(suppression.Question{Account: e.Account, List: e.ListID, Bulk: lane == api.Bulk, Addresses: e.To})
}

// beginKeys are those of begin.lua.
func (b *Outbox) beginKeys(partition int, id string) []string {
	keys := []string{b.store.message(partition, id)}
	if b.Suppressions == nil {
		return keys
	}
	if version := b.Suppressions.VersionKey(); version != "" {
		keys = append(keys, version)
	}
	return keys
}

// skipped tells a client which recipients of a message are not mailed.
func skipped(e envelope, stopped map[int]*suppression.Entry) *api.Skipped {
	if len(stopped) == 0 {
		return nil
	}
	which := slices.Sorted(maps.Keys(stopped))
	first := stopped[which[0]]
	return &api.Skipped{Reason: string(first.Reason), ListID: first.List, Recipients: e.addresses(which)}
}

// sift asks, before a message is accepted, whether any of its recipients may be mailed. If none may it is not queued but entered in the log, and the
// answer says so (done), or, with Options.RefuseSuppressed, it is refused. A message whose idempotency key was used before is not sifted:
// its client is answered as it was then.
func (b *Outbox) sift(ctx context.Context, s submission) (answer api.SubmitAnswer, done bool, _ error) {
	stopped, err := b.stops(ctx, s.envelope, s.lane, everybody(len(s.envelope.To)))
	if err != nil || len(stopped) == 0 {
		return api.SubmitAnswer{}, false, err
	}
	why := skipped(s.envelope, stopped)
	if len(stopped) < len(s.envelope.To) {
		return api.SubmitAnswer{Skipped: why}, false, nil
	}
	known, err := b.keyKnown(ctx, s)
	if err != nil || known {
		return api.SubmitAnswer{}, false, err
	}
	if b.opts.RefuseSuppressed {
		return api.SubmitAnswer{}, false, suppressedFault(why)
	}
	if err := b.skip(ctx, s, stopped); err != nil {
		return api.SubmitAnswer{}, false, err
	}
	return api.SubmitAnswer{Response: "Skipped: nobody in this message may be mailed", MessageID: s.envelope.MessageID, Skipped: why}, true, nil
}

// skippedNow tells which recipients of a message that was accepted before would be left out today. None are, where that would be all of them.
func (b *Outbox) skippedNow(ctx context.Context, s submission) (*api.Skipped, error) {
	stopped, err := b.stops(ctx, s.envelope, s.lane, everybody(len(s.envelope.To)))
	if err != nil || len(stopped) == len(s.envelope.To) {
		return nil, err
	}
	return skipped(s.envelope, stopped), nil
}

// suppressedFault refuses a message, with Options.RefuseSuppressed.
func suppressedFault(why *api.Skipped) error {
	f := fault.New(fault.Unprocessable, "RecipientSuppressed", "Nobody in this message may be mailed (%s), and suppression.refuse is on", why.Reason)
	f.Details = map[string]any{"skipped": why}
	return f
}

// keyKnown says whether a message's idempotency key was used before.
func (b *Outbox) keyKnown(ctx context.Context, s submission) (bool, error) {
	if s.fingerprint == "" {
		return false, nil
	}
	p, _ := partitionOf(s.id, b.DB.Partitions())
	n, err := b.DB.Client().Exists(ctx, b.store.idempotency(p, keyHash(s.envelope.Account, s.key))).Result()
	if err != nil {
		return false, away(err, "look for an idempotency key")
	}
	return n > 0, nil
}

// skip enters a message in the log that is not queued.
func (b *Outbox) skip(ctx context.Context, s submission, stopped map[int]*suppression.Entry) error {
	pipe := b.DB.Pipeline()
	if err := b.skipOn(ctx, pipe, s, stopped); err != nil {
		return err
	}
	if err := pipe.Exec(ctx); err != nil {
		return away(err, "note that message "+s.id+" is not sent")
	}
	return nil
}

// skipOn adds to a pipeline what enters a message in the log that is not queued.
func (b *Outbox) skipOn(ctx context.Context, pipe *redisdb.Pipeline, s submission, stopped map[int]*suppression.Entry) error {
	now := b.clock.Now()
	st, all := newStatus(s.envelope), slices.Sorted(maps.Keys(stopped))
	for _, i := range all {
		st.Recipients[i].Status, st.Recipients[i].Response = rcptSuppressed, explain(stopped[i])
	}
	r := row{id: s.id, lane: s.lane, created: millis(now), planned: millis(now), max: s.attempts, gateway: s.gateway, envelope: s.envelope, status: st}
	events := telling{account: s.envelope.Account, at: now}
	if err := events.suppressed(r, stopped); err != nil {
		return err
	}
	recap, err := b.ending(r, events.remember(st), resultSuppressed, string(stopped[all[0]].Reason), now)
	if err != nil {
		return err
	}
	p, _ := partitionOf(s.id, b.DB.Partitions())
	args := append([]any{s.id, millis(now), string(s.lane), s.envelope.Account, recap}, events.lines...)
	b.mail.suppressed(ctx, s.id, s.envelope.addresses(all), string(stopped[all[0]].Reason))
	b.metrics.accepted.WithLabelValues("skipped").Inc()
	b.metrics.ended.WithLabelValues(resultSuppressed).Inc()
	b.metrics.recipients.WithLabelValues(rcptSuppressed).Add(float64(len(all)))
	pipe.Script(skipScript, []string{b.store.message(p, s.id)}, args...)
	return nil
}

// suppressed tells that recipients are not mailed: one event for each reason.
func (t *telling) suppressed(r row, stopped map[int]*suppression.Entry) error {
	byReason := map[string][]int{}
	for _, i := range slices.Sorted(maps.Keys(stopped)) {
		reason := string(stopped[i].Reason)
		byReason[reason] = append(byReason[reason], i)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		which := byReason[reason]
		err := t.tell(event.MessageSuppressed, event.Cancelled{
			Message: r.envelope.about(r.id, r.lane, r.gateway, r.envelope.addresses(which)), Reason: reason, InDoubt: r.mayBeThere(),
		}, which, 0, reason)
		if err != nil {
			return err
		}
	}
	return nil
}

// explain says in words why a recipient is not mailed, and where that comes from.
func explain(e *suppression.Entry) string {
	words := []string{"suppressed: " + string(e.Reason)}
	switch {
	case e.List != "":
		words = append(words, "from list "+e.List)
	case e.Account != "":
		words = append(words, "for account "+e.Account)
	}
	if e.Domain != "" {
		words = append(words, "all of "+e.Domain)
	}
	if e.Source != "" {
		words = append(words, "told by "+e.Source)
	}
	return strings.Join(words, ", ")
}

// teach has the suppressions learn from what relays said of recipients that were given up: an address that does not exist stops mail to it at
// once, one that is only full, or away for too long, when that happens again and again.
func (b *Outbox) teach(ctx context.Context, c *claim, d decision) error {
	if b.Suppressions == nil {
		return nil
	}
	var dead []suppression.Entry
	for _, i := range d.lost {
		said := d.why[i].smtp
		if said == nil || said.InDoubt || said.Code == 0 {
			continue
		}
		e := suppression.Entry{
			Address: c.envelope.To[i], Reason: suppression.HardBounce, Account: c.envelope.Account, Source: "smtp", MessageID: c.id, Response: said.Line,
		}
		switch {
		case said.Suppress:
			dead = append(dead, b.Suppressions.Learnt(e))
		case said.Verdict == smtpsend.Soft && said.Scope == smtpsend.ScopeRecipient:
			if _, err := b.Suppressions.Soft(ctx, e, b.clock.Now()); err != nil && !fault.Is(err, fault.Invalid) {
				return err
			}
		}
	}
	if len(dead) == 0 {
		return nil
	}
	if _, err := b.Suppressions.Add(ctx, dead...); err != nil && !fault.Is(err, fault.Invalid) { // what is no address is mailed by nobody
		return err
	}
	return nil
}
