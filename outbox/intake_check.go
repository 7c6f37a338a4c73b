package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/outbox/suppression"
)

// maxMetadata is the largest metadata object, in bytes of JSON. Every event carries it.
const maxMetadata = 4 << 10

// maxEnvelopeID is the longest ENVID of RFC 3461 section 4.4.
const maxEnvelopeID = 100

// faults collects invalid fields. Their keys are API fields.
type faults struct{ fault.Fields }

// checkShared finds invalid shared fields, except for the ones that package message finds.
func checkShared(sh Shared, now time.Time) []fault.Field {
	var wrong faults
	if len(sh.Raw) > 0 && (sh.HTML != "" || sh.Text != "" || len(sh.Attachments) > 0) {
		wrong.Add("raw", "can't be combined with html, text or attachments")
	}
	wrong.checkWords(sh)
	if _, err := schedule.Zone(cmp.Or(sh.TZ, "UTC")); err != nil {
		wrong.Add("tz", "%s", err)
	}
	if sh.DeliverBy != nil && !sh.DeliverBy.After(now) {
		wrong.Add("deliverBy", "must be in the future")
	}
	if sh.DSN != nil {
		wrong.checkDSN(*sh.DSN)
	}
	for i, tag := range sh.Tags {
		if tag == "" || len(tag) > 128 {
			wrong.Add(fmt.Sprintf("tags[%d]", i), "must have 1 to 128 characters")
		}
	}
	return wrong.Fields
}

// checkWords finds wrong combinations of the fields that give the words.
func (f *faults) checkWords(sh Shared) {
	for _, field := range []struct {
		key   string
		given bool
	}{
		{"raw", len(sh.Raw) > 0}, {"html", sh.HTML != ""}, {"text", sh.Text != ""},
	} {
		if field.given && sh.Template != "" {
			f.Add(field.key, "can't be combined with template")
		}
	}
	if sh.Plain {
		return
	}
	if len(sh.Raw) > 0 && sh.Template == "" {
		f.Add("render", "can't be combined with raw")
	}
}

// checkDSN finds what no relay accepts in a request for notifications (RFC 3461). Here it is the client's
// error; at the relay it would fail an accepted message.
func (f *faults) checkDSN(dsn api.DSN) {
	unprintable := func(c rune) bool { return c < ' ' || c > '~' }
	if len(dsn.ID) > maxEnvelopeID || strings.ContainsFunc(dsn.ID, unprintable) {
		f.Add("dsn.id", "must have at most %d printable ASCII characters", maxEnvelopeID)
	}
	if len(dsn.Notify) > 1 && slices.Contains(dsn.Notify, "never") {
		f.Add("dsn.notify", "can't combine never with other values")
	}
	if dsn.Recipient == "" {
		return
	}
	if _, err := message.NormalizeAddress(dsn.Recipient); err != nil {
		f.Add("dsn.recipient", "%s", err)
	}
}

// checkEntry finds the invalid fields of an entry, except for the ones that package message finds.
func (b *Batch) checkEntry(e Entry, many bool) []fault.Field {
	var wrong faults
	wrong.checkMetadata(e.Metadata)
	if e.SendAt != nil {
		wrong.Fields = append(wrong.Fields, b.in.opts.checkAhead(*e.SendAt, b.began)...)
	}
	sh := b.shared
	if sh.DeliverBy != nil && e.SendAt != nil && sh.DeliverBy.Before(*e.SendAt) {
		if many {
			wrong.Add("sendAt", "must not be after deliverBy")
		} else {
			wrong.Add("deliverBy", "must not be before sendAt")
		}
	}
	return wrong.Fields
}

// checkKey returns the error for an entry that lacks the idempotency key it needs.
func checkKey(sh Shared, e Entry) []fault.Field {
	if e.Key != "" || !sh.KeyRequired {
		return nil
	}
	return []fault.Field{{Key: "idempotencyKey", Message: "is required"}}
}

func (f *faults) checkMetadata(metadata json.RawMessage) {
	if len(metadata) > maxMetadata {
		f.Add("metadata", "must be at most %d bytes of JSON", maxMetadata)
	}
	if len(metadata) > 0 && !strings.HasPrefix(strings.TrimSpace(string(metadata)), "{") {
		f.Add("metadata", "must be an object")
	}
}

// joinFields returns wrong fields and the fields of err as one fault.
func joinFields(fields []fault.Field, err error) error {
	if len(fields) == 0 {
		return err
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		for _, field := range f.Fields {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	} else if err != nil {
		return err
	}
	return fault.InvalidFields(fields)
}

// room returns an error if a quota has no room for all entries of a batch together, so that nothing is queued
// of a mail merge that does not fit. Entries that were accepted before need none. The room may be taken by
// others before the entries come to it: accept.lua counts each message again.
func (b *Batch) room(ctx context.Context, entries []Entry) error {
	if len(b.quotas) == 0 {
		return nil
	}
	fresh, err := b.fresh(ctx, entries)
	if err != nil || fresh == 0 {
		return err
	}
	now := b.in.clock.Now()
	all, err := b.in.usage(ctx, b.quotas, now)
	if err != nil {
		return err
	}
	more := used{fresh, fresh * (b.light + b.files), fresh}
	for i, q := range b.quotas {
		have := total(all[i])
		if name := q.over(have.plus(more)); name != "" {
			return b.in.Accounts.Exceeded(ctx, q.excess(name, have, more, now))
		}
	}
	return nil
}

// over returns the name of the first limit of a quota that is exceeded, or "".
func (q quota) over(u used) string {
	switch {
	case q.limit.messages > 0 && u.messages > q.limit.messages:
		return "messages"
	case q.limit.bytes > 0 && u.bytes > q.limit.bytes:
		return "bytes"
	case q.limit.perDay > 0 && u.perDay > q.limit.perDay:
		return "perDay"
	}
	return ""
}

// fresh returns how many entries of a batch were not accepted before, by their idempotency keys.
func (b *Batch) fresh(ctx context.Context, entries []Entry) (n int, _ error) {
	pipe := b.in.DB.Client().Pipeline()
	var known []*redis.IntCmd
	for _, e := range entries {
		if e.Key != "" {
			p, key, _ := keyOf(b.account.ID, e, b.in.DB.Partitions())
			known = append(known, pipe.Exists(ctx, b.in.keys.idempotency(p, key)))
		}
	}
	if len(known) > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return 0, redisError(err, "look up the keys of a mail merge")
		}
	}
	n = len(entries)
	for _, k := range known {
		n -= int(k.Val())
	}
	return n, nil
}

// question returns what accept.lua must look up to know that no recipient of a message is suppressed. It is
// nil if the script can't or needn't.
func (in *Intake) question(m *newMessage) *suppression.Look {
	if in.Suppressions == nil {
		return nil
	}
	return in.Suppressions.Look(suppression.Question{
		Account: m.envelope.Account, List: m.envelope.ListID, Bulk: m.lane == api.Bulk, Addresses: m.envelope.To,
	})
}

// withoutSuppressed looks up the recipients of one batch's messages in the suppressions. It returns the
// messages that may be sent to at least one recipient, ready to be accepted. The others are entered in the
// log, or refused with Options.RefuseSuppressed. But if a key was used before, the client gets the first
// answer.
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

// coverErased replaces the addresses of erased people, so that they aren't stored again. It reports whether
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

// skip enters messages in the log if none of their recipients may be sent to, or refuses them with
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
				"All recipients of this message are suppressed (%s), and suppression.refuse is on", why.Reason)
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
