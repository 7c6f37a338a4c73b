package outbox

import (
	"context"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/suppression"
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
// entered in the log, or refused with Options.RefuseSuppressed. But if its key was used before, the client
// gets the first answer.
func (in *Intake) withoutSuppressed(ctx context.Context, all []*newMessage) (kept []*newMessage) {
	if len(all) == 0 {
		return nil
	}
	every := envelope{Account: all[0].envelope.Account, additions: all[0].envelope.additions}
	for _, m := range all {
		every.To = append(every.To, m.envelope.To...)
	}
	stopped, err := in.stops(ctx, every, all[0].lane, everybody(len(every.To)))
	var unsent []*newMessage
	first := 0
	for _, m := range all {
		m.stopped = make(map[int]*suppression.Entry)
		for i := range m.envelope.To {
			if entry := stopped[first+i]; entry != nil {
				m.stopped[i] = entry
			}
		}
		first += len(m.envelope.To)
		if m.coverErased() && err == nil {
			err = in.encode(m)
		}
		m.unlook()
		m.result.Skipped = skipped(m.envelope, m.stopped)
		if err == nil && len(m.stopped) < len(m.envelope.To) {
			kept = append(kept, m)
			continue
		}
		in.takeOut(ctx, m)
		if err == nil {
			unsent = append(unsent, m)
		} else {
			m.refuse(err)
		}
	}
	in.skip(ctx, unsent)
	return kept
}

// coverErased replaces the addresses of erased persons, so that they are not stored again. It reports whether
// there was one.
func (m *newMessage) coverErased() (changed bool) {
	for i, entry := range m.stopped {
		if entry.Reason == suppression.Erased {
			m.envelope.To = slices.Clone(m.envelope.To)
			m.envelope.To[i], changed = message.Erased, true
		}
	}
	return changed
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

// skip enters messages in the log of which no recipient may be mailed, or refuses them with
// Options.RefuseSuppressed.
func (in *Intake) skip(ctx context.Context, all []*newMessage) {
	pipe := in.DB.ReplicatedPipeline()
	answers := make([]*redisdb.Reply[accepted], len(all))
	for i, m := range all {
		m.result.Skipped.All = true
		args, err := in.skipArgs(m)
		if err != nil {
			m.refuse(err)
			continue
		}
		answers[i] = skipScript.Add(pipe, m.keys, args)
	}
	_ = pipe.Exec(ctx) // each command has its own error
	for i, m := range all {
		if answers[i] == nil {
			continue
		}
		answer, err := answers[i].Read()
		switch why := m.result.Skipped; {
		case err != nil:
			m.refuse(redisError(err, "note that message "+m.id+" is not sent"))
		case answer.Word == "REUSED":
			m.refuse(keyReused())
		case answer.Word == keyHit:
			m.result.Skipped = nil
			in.answer(ctx, m, answer)
		case in.opts.RefuseSuppressed:
			f := fault.New(fault.Unprocessable, "RecipientSuppressed",
				"Nobody in this message may be mailed (%s), and suppression.refuse is on", why.Reason)
			f.Details = map[string]any{"skipped": why}
			m.refuse(f)
		default:
			in.mail.suppressed(ctx, m.id, why.Recipients, why.Reason)
			in.metrics.accepted.WithLabelValues("skipped").Inc()
			in.metrics.ended.WithLabelValues(resultSuppressed).Inc()
			in.metrics.recipients.WithLabelValues(rcptSuppressed).Add(float64(len(why.Recipients)))
		}
	}
}

// skipArgs returns the arguments of skip.lua.
func (in *Intake) skipArgs(m *newMessage) (args skipArgs, _ error) {
	now := in.clock.Now()
	st := newStatus(m.envelope)
	for i, entry := range m.stopped {
		st.Recipients[i].Status, st.Recipients[i].Response = rcptSuppressed, Explain(entry)
	}
	r := row{
		id: m.id, lane: m.lane, created: redisdb.Millis(now), planned: redisdb.Millis(now), max: m.attempts,
		gateway: m.gateway, envelope: m.envelope, status: st,
	}
	events := m.envelope.events(now)
	if err := events.suppressed(r, m.stopped); err != nil {
		return args, err
	}
	record, err := in.ending(r, events.remember(st), resultSuppressed, m.result.Skipped.Reason, now)
	args = skipArgs{ID: m.id, Now: now, Lane: m.lane, Account: m.envelope.Account, Record: record,
		Refuse: in.opts.RefuseSuppressed, Fingerprint: m.fingerprint, Merge: m.merge,
		KeepKey: in.keepKey(), Addressed: m.envelope.addressed(), KeepAddressed: in.opts.keepAddressed(),
		Events: events.lines}
	if m.key != "" {
		args.Memo = m.result.memo()
	}
	return args, err
}
