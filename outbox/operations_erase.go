package outbox

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// ReasonErased is why messages to an erased person are cancelled.
const ReasonErased = "erased"

// Tally is called before each part of a place is erased, and counts it. An error ends the work.
type Tally func(place string, n int) error

// The places of Erase.
const (
	PlaceOutbox      = "outbox"
	PlaceDeadLetters = "deadLetters"
	PlaceMessages    = "messages"
)

// Erase removes a person from the outbox and the log, and may be repeated. A message to the person alone is
// removed; a live one is cancelled, with an event that doesn't name the person. In a message to several
// people the address becomes message.Erased, the others get their mail, and the content stays as it is until
// it ends. Erase waits for messages that are being sent.
func (d *Operations) Erase(ctx context.Context, w Whom, tally Tally) error {
	if err := d.clock.ready(ctx, d.DB.Client()); err != nil {
		return redisError(err, "erase a person")
	}
	e := &erasing{Operations: d, Whom: w, tally: tally, counted: map[string]bool{}}
	for {
		e.busy = 0
		q := api.OutboxQuery{Account: w.Account, PageSize: scanChunk}
		err := d.eachPage(ctx, q, nil, func(some []entry) error { return e.live(ctx, some) })
		if err != nil {
			return err
		}
		if e.busy == 0 {
			break
		}
		if !redisdb.Pause(ctx, busyPause) {
			return ctx.Err()
		}
	}
	err := d.eachLogged(ctx, w.Account, func(some []entry) error { return e.logged(ctx, some) })
	if err != nil {
		return err
	}
	if err := d.forgetAddressed(ctx, w); err != nil {
		return err
	}
	if w.Account != "" { // facts name no account: facts about messages that are not in the log expire
		return nil
	}
	err = d.DB.Scan(ctx, d.keys.all("facts"), func(keys []string) error { return e.facts(ctx, keys...) })
	if err != nil {
		return err
	}
	return d.DB.Scan(ctx, d.keys.all("dialogues"), func(keys []string) error { return e.dialogues(ctx, keys) })
}

const (
	busyPause  = 300 * time.Millisecond // while messages to the person are being sent
	erasePause = 2 * time.Millisecond   // between pages, so that mail goes first
)

// erasing is one run of Erase.
type erasing struct {
	*Operations
	Whom
	tally Tally
	busy  int // messages that are being sent
	// ids of live messages that were tallied; some are tried again
	counted map[string]bool
}

// eachLogged calls do with the messages of an account, or of all, live and in the log, page by page.
func (d *Operations) eachLogged(ctx context.Context, account string, do func([]entry) error) error {
	w := window{indexes: d.reader.logIndexes(api.LogQuery{Account: account}), size: scanChunk}
	for {
		found, err := d.reader.look(ctx, w)
		if err != nil {
			return redisError(err, "list messages")
		}
		if err := do(found.page); err != nil || !found.more {
			return err
		}
		if w.cursor = found.next; !redisdb.Pause(ctx, erasePause) {
			return ctx.Err()
		}
	}
}

// live erases the person from live messages.
func (e *erasing) live(ctx context.Context, some []entry) error {
	rows, err := e.readRows(ctx, some)
	if err != nil {
		return redisError(err, "read messages")
	}
	for _, r := range rows {
		if !slices.ContainsFunc(r.envelope.To, e.Is) {
			continue
		}
		place := PlaceOutbox
		if r.state == stateFailed {
			place = PlaceDeadLetters
		}
		if r.state == stateActive {
			e.busy++
			continue
		}
		if !e.counted[r.id] {
			if err := e.tally(place, 1); err != nil {
				return err
			}
			e.counted[r.id] = true
		}
		word, err := e.change(ctx, r.id, func(r row) (string, error) { return e.message(ctx, r) })
		if err != nil {
			return err
		}
		if word == "ACTIVE" || word == "CHANGED" {
			e.busy++
		}
	}
	return nil
}

// message erases the person from one live message.
func (e *erasing) message(ctx context.Context, r row) (word string, err error) {
	// before the message ends: from then on nothing leads to its facts
	if err := e.facts(ctx, e.keys.facts(r.partition, r.id)); err != nil {
		return "", err
	}
	masked, others := e.masked(r)
	needs := rcptQueued // somebody with this status needs the message
	if r.state == stateFailed {
		needs = rcptFailed
	}
	if !slices.ContainsFunc(others, func(i int) bool { return r.status.Recipients[i].Status == needs }) {
		args, err := e.cancelArgs(masked, ReasonErased)
		if err != nil {
			return "", err
		}
		record := args.Record
		if len(others) == 0 {
			record = ""
		}
		// the log names the person until expunge: after a crash in between, logged finds the entry by that
		full, err := e.cancelArgs(r, ReasonErased)
		if err != nil {
			return "", err
		}
		args.Record = full.Record
		answer, err := run(ctx, e.store, cancelScript, r.partition, r.id, args)
		if answer.Word == "OK" {
			e.forget(ctx, r.task())
			e.Operations.cancelled(ctx, masked, ReasonErased)
			err = e.expunge(ctx, masked, record)
		}
		return answer.Word, err
	}
	args, err := e.eraseArgs(masked, others)
	if err != nil {
		return "", err
	}
	answer, err := run(ctx, e.store, eraseScript, r.partition, r.id, args)
	if answer.Word == "OK" {
		err = e.facts(ctx, e.keys.facts(r.partition, r.id))
	}
	return answer.Word, err
}

// masked returns a message without the person, and which of its recipients are others.
func (e *erasing) masked(r row) (masked row, others []int) {
	r.envelope.To = slices.Clone(r.envelope.To)
	r.status = e.coveredStatus(r.status)
	for i, to := range r.envelope.To {
		if e.Is(to) {
			r.envelope.To[i] = message.Erased
		}
		if r.envelope.To[i] != message.Erased {
			others = append(others, i)
		}
	}
	return r, others
}

// coveredStatus returns a status whose replies do not name the person.
func (e *erasing) coveredStatus(s status) status {
	raw, err := json.Marshal(s)
	if err != nil {
		return s
	}
	var covered status
	if text, found := e.CoverJSON(string(raw)); !found || json.Unmarshal([]byte(text), &covered) != nil {
		return s
	}
	return covered
}

// eraseArgs returns the arguments of erase.lua: the masked recipients get nothing any more. An event names
// the recipients that were waiting.
func (e *erasing) eraseArgs(r row, others []int) (args eraseArgs, err error) {
	now := e.clock.Now()
	events, st := r.envelope.events(now), r.status
	st.Recipients = slices.Clone(st.Recipients)
	var queued []int
	for i, one := range st.Recipients {
		if slices.Contains(others, i) || one.Status != rcptQueued && one.Status != rcptFailed {
			continue
		}
		if one.Status == rcptQueued {
			queued = append(queued, i)
		}
		st.Recipients[i] = recipient{Status: rcptCancelled}
	}
	if len(queued) > 0 {
		data := event.Cancelled{Message: r.about(queued), Reason: ReasonErased, InDoubt: r.mayBeThere()}
		if err := events.add(event.MessageCancelled, data, queued, 0, ReasonErased); err != nil {
			return args, err
		}
	}
	args = eraseArgs{ID: r.id, State: r.state, Fence: r.fence, Events: events.lines}
	st = events.remember(st)
	if args.Envelope, err = e.jsons.pack(r.id, &r.envelope); err == nil {
		args.Status, err = e.jsons.pack(r.id, &st)
	}
	return args, err
}

// logged erases the person from the log. Entries of others are changed if they name the person.
func (e *erasing) logged(ctx context.Context, some []entry) error {
	return e.eachEnded(ctx, some, func(id, raw string) error {
		covered, found := e.CoverJSON(raw)
		if !found {
			return nil
		}
		var one ended
		if err := json.Unmarshal([]byte(covered), &one); err != nil {
			return err
		}
		record, r := "", one.row(id, e.partition(id))
		if slices.ContainsFunc(r.envelope.To, func(to string) bool { return to != message.Erased }) {
			var err error
			if record, err = e.jsons.pack(id, &one); err != nil {
				return err
			}
		}
		if err := e.tally(PlaceMessages, 1); err != nil {
			return err
		}
		return e.expunge(ctx, r, record)
	})
}

// eachEnded calls do with the log entries of ended messages, as JSON.
func (d *Operations) eachEnded(ctx context.Context, some []entry, do func(id, raw string) error) error {
	pipe, got := d.DB.Client().Pipeline(), map[string]*redis.StringCmd{}
	for _, one := range some {
		if one.ended {
			got[one.id] = pipe.Get(ctx, d.keys.ended(d.partition(one.id), one.id))
		}
	}
	if len(got) == 0 {
		return nil
	}
	if err := execRead(ctx, pipe); err != nil {
		return redisError(err, "read the log")
	}
	for id, cmd := range got {
		if cmd.Val() == "" { // deleted since
			continue
		}
		var one ended
		err := d.jsons.unpack(id, []byte(cmd.Val()), &one)
		if err == nil {
			var raw []byte
			if raw, err = json.Marshal(one); err == nil {
				err = do(id, string(raw))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expunge erases the person from the facts about a message, and then deletes or replaces its log entry. In
// this order, because the entry leads to the facts.
func (e *erasing) expunge(ctx context.Context, r row, record string) error {
	if err := e.facts(ctx, e.keys.facts(r.partition, r.id)); err != nil {
		return err
	}
	_, err := expungeScript.RunReplicated(ctx, e.DB, []string{e.keys.events(r.partition)}, expungeArgs{ID: r.id,
		Lane: r.lane, Result: r.state, Account: r.envelope.Account, Reference: referenceHash(r.id), Record: record})
	return redisError(err, "erase a person from the log")
}

// hashesAtOnce is how many messages' facts or dialogues are read together.
const hashesAtOnce = 100

// facts deletes the facts that name the person. A field that does not open counts something.
func (e *erasing) facts(ctx context.Context, keys ...string) error {
	return e.fields(ctx, "facts", keys, func(_ string, packed []byte) bool {
		raw, err := e.jsons.raw(packed)
		if err != nil {
			return false
		}
		_, found := e.CoverJSON(string(raw))
		return found
	})
}

// fields deletes the fields of hashes that name the person.
func (e *erasing) fields(ctx context.Context, what string, keys []string,
	names func(key string, packed []byte) bool) error {
	for some := range slices.Chunk(keys, hashesAtOnce) {
		read, pipe := make([]*redis.MapStringStringCmd, len(some)), e.DB.Client().Pipeline()
		for i, key := range some {
			read[i] = pipe.HGetAll(ctx, key)
		}
		if err := execRead(ctx, pipe); err != nil {
			return redisError(err, "read "+what)
		}
		pipe = e.DB.Client().Pipeline()
		for i, all := range read {
			for field, packed := range all.Val() {
				if names(some[i], []byte(packed)) {
					pipe.HDel(ctx, some[i], field)
				}
			}
		}
		if pipe.Len() == 0 {
			continue
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return redisError(err, "erase "+what+" about a person")
		}
	}
	return nil
}

// EraseFacts deletes what became known of a person by messages that are not in the log.
func (d *Operations) EraseFacts(ctx context.Context, w Whom, ids ...string) error {
	keys := make([]string, 0, len(ids))
	for _, id := range ids {
		if p, ok := partitionOf(id, d.DB.Partitions()); ok {
			keys = append(keys, d.keys.facts(p, id))
		}
	}
	return (&erasing{Operations: d, Whom: w}).facts(ctx, keys...)
}

// Personal calls do with every message to a person, live and in the log. The other recipients are left out.
func (d *Operations) Personal(ctx context.Context, w Whom, do func(api.LoggedMessage) error) error {
	return d.eachLogged(ctx, w.Account, func(some []entry) error {
		rows, err := d.readLog(ctx, some)
		if err != nil {
			return redisError(err, "read messages")
		}
		for _, r := range rows {
			if !slices.ContainsFunc(r.envelope.To, w.Is) {
				continue
			}
			m := r.logged()
			m.Log = r.status.Log
			if len(r.envelope.To) == 1 { // the dialogues of others name the other recipients
				if m.Log, err = loggedAttempts(ctx, d.store, r); err != nil {
					return err
				}
			}
			m.Envelope.To = slices.DeleteFunc(slices.Clone(m.Envelope.To), func(to string) bool { return !w.Is(to) })
			m.Recipients = slices.DeleteFunc(slices.Clone(m.Recipients), func(one api.RecipientStatus) bool {
				return !w.Is(one.Address)
			})
			if err := do(m); err != nil {
				return err
			}
		}
		return nil
	})
}

// dialogues deletes dialogues of messages to others in which a relay names the person. Dialogues of messages
// to the person are gone by now. One that doesn't open is deleted too: it may name anybody.
func (e *erasing) dialogues(ctx context.Context, keys []string) error {
	return e.fields(ctx, "dialogues", keys, func(key string, packed []byte) bool {
		raw, err := rawDialogues(e.store, key[strings.LastIndexByte(key, ':')+1:], packed)
		_, found := e.CoverJSON(string(raw))
		return found || err != nil
	})
}

// forgetAddressed removes an erased address's notes about messages that are gone, or no longer go to it.
func (d *Operations) forgetAddressed(ctx context.Context, w Whom) error {
	at := notedOf(w.Address())
	for p := range d.DB.Partitions() {
		key := d.keys.addressed(p, at.bucket)
		notes, err := d.DB.Client().LRange(ctx, key, 0, -1).Result()
		if err != nil {
			return redisError(err, "read to whom messages were")
		}
		notes = slices.DeleteFunc(notes, func(note string) bool { return !strings.HasPrefix(note, at.tag) })
		for some := range slices.Chunk(notes, scanChunk) {
			if err := d.forgetNotes(ctx, key, at, some); err != nil {
				return redisError(err, "erase to whom messages were")
			}
		}
	}
	return nil
}

func (d *Operations) forgetNotes(ctx context.Context, key string, at noted, notes []string) error {
	ids := make([]string, len(notes))
	for i, note := range notes {
		ids[i] = note[2*addressedTag:]
	}
	rows, err := d.readLog(ctx, entriesOf(ids))
	if err != nil {
		return err
	}
	stay := map[string]bool{}
	for _, r := range rows {
		stay[r.id] = slices.ContainsFunc(r.envelope.To, func(to string) bool { return notedOf(to) == at })
	}
	pipe := d.DB.Client().Pipeline()
	for i, note := range notes {
		if !stay[ids[i]] {
			pipe.LRem(ctx, key, 0, note)
		}
	}
	return execRead(ctx, pipe)
}
