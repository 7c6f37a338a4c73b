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

// question is what accept.lua looks at to know that nobody in a message is suppressed. It is nil if the
// script can't, or need not.
func (in *Intake) question(m *newMessage) *suppression.Look {
	if in.Suppressions == nil {
		return nil
	}
	return in.Suppressions.Look(suppression.Question{
		Account: m.envelope.Account, List: m.envelope.ListID, Bulk: m.lane == api.Bulk, Addresses: m.envelope.To,
	})
}

// withoutSuppressed asks the suppressions about the recipients of messages of one batch. It returns the
// messages of which a recipient may be mailed, ready to be accepted. A message of which none may be mailed is
// entered in the log, or refused with Options.RefuseSuppressed. But if its key was used before, it is
// returned too: the client gets the first answer.
func (in *Intake) withoutSuppressed(ctx context.Context, all []*newMessage) (kept []*newMessage) {
	if len(all) == 0 {
		return nil
	}
	every := envelope{Account: all[0].envelope.Account, additions: all[0].envelope.additions}
	for _, m := range all {
		every.To = append(every.To, m.envelope.To...)
	}
	stopped, err := in.stops(ctx, every, all[0].lane, everybody(len(every.To)))
	pipe := in.DB.Pipeline()
	var unsent []*newMessage
	first := 0
	for _, m := range all {
		mine := make(map[int]*suppression.Entry)
		for i := range m.envelope.To {
			if entry := stopped[first+i]; entry != nil {
				mine[i] = entry
			}
		}
		first += len(m.envelope.To)
		known := false
		if err == nil && len(mine) == len(m.envelope.To) {
			known, err = in.keyKnown(ctx, m)
		}
		if err == nil && (known || len(mine) < len(m.envelope.To)) {
			if !known { // then some are mailed
				m.result.Skipped = skipped(m.envelope, mine)
			}
			m.unlook()
			kept = append(kept, m)
			continue
		}
		in.takeOut(ctx, m)
		if err != nil {
			m.refuse(err)
		} else if in.skipAll(ctx, pipe, m, mine) {
			unsent = append(unsent, m)
		}
	}
	if len(unsent) == 0 {
		return kept
	}
	if err := pipe.Exec(ctx); err != nil {
		for _, m := range unsent {
			m.refuse(redisError(err, "note that message "+m.id+" is not sent"))
		}
	}
	return kept
}

// skippedNow returns the recipients of a message that was accepted before that would be skipped today. It is
// nil if all would.
func (in *Intake) skippedNow(ctx context.Context, m *newMessage) (*api.Skipped, error) {
	stopped, err := in.stops(ctx, m.envelope, m.lane, everybody(len(m.envelope.To)))
	if err != nil || len(stopped) == len(m.envelope.To) {
		return nil, err
	}
	return skipped(m.envelope, stopped), nil
}

// keyKnown reports whether a message's key was used before.
func (in *Intake) keyKnown(ctx context.Context, m *newMessage) (bool, error) {
	if m.key == "" {
		return false, nil
	}
	key := in.keys.idempotency(m.partition, keyHash(m.envelope.Account, m.key))
	n, err := in.DB.Client().Exists(ctx, key).Result()
	return n > 0, redisError(err, "look for an idempotency key")
}

// skipAll answers a message of which no recipient may be mailed. It reports whether the message is to be
// entered in the log, by a script that it adds to the pipeline.
func (in *Intake) skipAll(ctx context.Context, pipe *redisdb.Pipeline, m *newMessage,
	stopped map[int]*suppression.Entry) bool {
	why := skipped(m.envelope, stopped)
	var err error
	if in.opts.RefuseSuppressed {
		f := fault.New(fault.Unprocessable, "RecipientSuppressed",
			"Nobody in this message may be mailed (%s), and suppression.refuse is on", why.Reason)
		f.Details = map[string]any{"skipped": why}
		err = f
	} else {
		err = in.skipOn(ctx, pipe, m, stopped)
	}
	m.result = Result{MessageID: m.envelope.MessageID, Skipped: why}
	if err != nil {
		m.refuse(err)
	}
	return err == nil
}

// skipOn adds to a pipeline the script that enters a message in the log that is not queued.
func (in *Intake) skipOn(ctx context.Context, pipe *redisdb.Pipeline, m *newMessage,
	stopped map[int]*suppression.Entry) error {
	now := in.clock.Now()
	st, all := newStatus(m.envelope), slices.Sorted(maps.Keys(stopped))
	for _, i := range all {
		st.Recipients[i].Status, st.Recipients[i].Response = rcptSuppressed, explain(stopped[i])
	}
	r := row{
		id: m.id, lane: m.lane, created: redisdb.Millis(now), planned: redisdb.Millis(now), max: m.attempts,
		gateway:  m.gateway,
		envelope: m.envelope, status: st,
	}
	events := changeEvents{account: m.envelope.Account, at: now}
	if err := events.suppressed(r, stopped); err != nil {
		return err
	}
	reason := string(stopped[all[0]].Reason)
	record, err := in.ending(r, events.remember(st), resultSuppressed, reason, now)
	if err != nil {
		return err
	}
	in.mail.suppressed(ctx, m.id, m.envelope.addresses(all), reason)
	in.metrics.accepted.WithLabelValues("skipped").Inc()
	in.metrics.ended.WithLabelValues(resultSuppressed).Inc()
	in.metrics.recipients.WithLabelValues(rcptSuppressed).Add(float64(len(all)))
	skipScript.Add(pipe, []string{in.keys.message(m.partition, m.id)}, skipArgs{ID: m.id, Now: now, Lane: m.lane,
		Account: m.envelope.Account, Record: record, Events: events.lines})
	return nil
}
