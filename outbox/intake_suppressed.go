package outbox

import (
	"context"
	"maps"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
)

// question is what accept.lua is to look at, to know that everybody in a message may be mailed; nil: it can't, or need not.
func (in *Intake) question(e envelope, lane api.Lane) *suppression.Look {
	if in.Suppressions == nil {
		return nil
	}
	return in.Suppressions.Look(suppression.Question{Account: e.Account, List: e.ListID, Bulk: lane == api.Bulk, Addresses: e.To})
}

// sift asks, before a message is accepted, whether any of its recipients may be mailed. If none may it is not queued but entered in the log, and the
// answer says so (done), or, with Options.RefuseSuppressed, it is refused. A message whose idempotency key was used before is not sifted:
// its client is answered as it was then.
func (in *Intake) sift(ctx context.Context, s submission) (answer api.SubmitAnswer, done bool, _ error) {
	stopped, err := in.stops(ctx, s.envelope, s.lane, everybody(len(s.envelope.To)))
	if err != nil || len(stopped) == 0 {
		return api.SubmitAnswer{}, false, err
	}
	why := skipped(s.envelope, stopped)
	if len(stopped) < len(s.envelope.To) {
		return api.SubmitAnswer{Skipped: why}, false, nil
	}
	known, err := in.keyKnown(ctx, s)
	if err != nil || known {
		return api.SubmitAnswer{}, false, err
	}
	if in.opts.RefuseSuppressed {
		return api.SubmitAnswer{}, false, suppressedFault(why)
	}
	if err := in.skip(ctx, s, stopped); err != nil {
		return api.SubmitAnswer{}, false, err
	}
	return api.SubmitAnswer{Response: "Skipped: nobody in this message may be mailed", MessageID: s.envelope.MessageID, Skipped: why}, true, nil
}

// skippedNow tells which recipients of a message that was accepted before would be left out today. None are, where that would be all of them.
func (in *Intake) skippedNow(ctx context.Context, s submission) (*api.Skipped, error) {
	stopped, err := in.stops(ctx, s.envelope, s.lane, everybody(len(s.envelope.To)))
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
func (in *Intake) keyKnown(ctx context.Context, s submission) (bool, error) {
	if s.fingerprint == "" {
		return false, nil
	}
	p, _ := partitionOf(s.id, in.DB.Partitions())
	n, err := in.DB.Client().Exists(ctx, in.keys.idempotency(p, keyHash(s.envelope.Account, s.key))).Result()
	if err != nil {
		return false, away(err, "look for an idempotency key")
	}
	return n > 0, nil
}

// skip enters a message in the log that is not queued.
func (in *Intake) skip(ctx context.Context, s submission, stopped map[int]*suppression.Entry) error {
	pipe := in.DB.Pipeline()
	if err := in.skipOn(ctx, pipe, s, stopped); err != nil {
		return err
	}
	if err := pipe.Exec(ctx); err != nil {
		return away(err, "note that message "+s.id+" is not sent")
	}
	return nil
}

// skipOn adds to a pipeline what enters a message in the log that is not queued.
func (in *Intake) skipOn(ctx context.Context, pipe *redisdb.Pipeline, s submission, stopped map[int]*suppression.Entry) error {
	now := in.clock.Now()
	st, all := newStatus(s.envelope), slices.Sorted(maps.Keys(stopped))
	for _, i := range all {
		st.Recipients[i].Status, st.Recipients[i].Response = rcptSuppressed, explain(stopped[i])
	}
	r := row{id: s.id, lane: s.lane, created: millis(now), planned: millis(now), max: s.attempts, gateway: s.gateway, envelope: s.envelope, status: st}
	events := telling{account: s.envelope.Account, at: now}
	if err := events.suppressed(r, stopped); err != nil {
		return err
	}
	recap, err := in.ending(r, events.remember(st), resultSuppressed, string(stopped[all[0]].Reason), now)
	if err != nil {
		return err
	}
	p, _ := partitionOf(s.id, in.DB.Partitions())
	args := append([]any{s.id, millis(now), string(s.lane), s.envelope.Account, recap}, events.lines...)
	in.mail.suppressed(ctx, s.id, s.envelope.addresses(all), string(stopped[all[0]].Reason))
	in.metrics.accepted.WithLabelValues("skipped").Inc()
	in.metrics.ended.WithLabelValues(resultSuppressed).Inc()
	in.metrics.recipients.WithLabelValues(rcptSuppressed).Add(float64(len(all)))
	pipe.Script(skipScript, []string{in.keys.message(p, s.id)}, args...)
	return nil
}
