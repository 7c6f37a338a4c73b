package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/redisdb"
)

// FactResult is what came of a fact.
type FactResult int

// What can come of a fact.
const (
	FactRecorded  FactResult = iota // noted and told
	FactKnown                       // known already
	FactLimit                       // so much is known about the message that no more is taken: see maxFacts
	FactUnmatched                   // neither the message nor an account to tell is known
)

// maxFacts is how many facts are remembered of a message: somebody who reads a mail every day for half a
// year, or a program gone wild.
const maxFacts = 200

// Facts notes what becomes known about messages after a relay took them.
type Facts struct{ *store }

// Learn notes facts on the timelines of their messages, and tells them as events. The results are in the
// order of the facts. A fact that is told twice, at once or a year later, is told on once for as long as its
// message is remembered, and three days beyond. An error means that some facts may not have been noted:
// changeEvents all of them again is safe.
func (fs *Facts) RecordFacts(ctx context.Context, facts []Fact) ([]FactResult, error) {
	about, err := fs.readAbout(ctx, facts)
	if err != nil {
		return nil, err
	}
	pipe := fs.DB.Pipeline()
	results, answers := make([]FactResult, len(facts)), make([]*redisdb.Reply[outcomeWord], len(facts))
	for i, f := range facts {
		r, known := about[f.MessageID]
		if !known && f.Account == "" {
			results[i] = FactUnmatched
			continue
		}
		args, err := fs.learnArgs(f, r, known)
		if err != nil {
			return nil, err
		}
		answers[i] = learnScript.Add(pipe, []string{fs.keys.message(fs.placeOf(f), args.ID)}, args)
	}
	if err := pipe.Exec(ctx); err != nil {
		return nil, away(err, "note what became known about messages")
	}
	for i, answer := range answers {
		if answer == nil {
			continue
		}
		said, _ := answer.Read() // an error would be Exec's
		switch said.Word {
		case "AGAIN":
			results[i] = FactKnown
		case "FULL":
			results[i] = FactLimit
		default:
			fs.mail.learned(ctx, facts[i])
		}
	}
	return results, nil
}

// readAbout reads the messages that facts are about, live or ended.
func (fs *Facts) readAbout(ctx context.Context, facts []Fact) (map[string]row, error) {
	var list []entry
	seen := map[string]bool{}
	for _, f := range facts {
		if _, ok := partitionOf(f.MessageID, fs.DB.Partitions()); ok && !seen[f.MessageID] {
			seen[f.MessageID] = true
			list = append(list, entry{id: f.MessageID})
		}
	}
	rows, err := fs.readLog(ctx, list)
	if err != nil {
		return nil, away(err, "read the messages that something became known about")
	}
	about := make(map[string]row, len(rows))
	for _, r := range rows {
		about[r.id] = r
	}
	return about, nil
}

// placeOf is the partition where a fact is noted: that of its message.
func (fs *Facts) placeOf(f Fact) int {
	if p, ok := partitionOf(f.MessageID, fs.DB.Partitions()); ok {
		return p
	}
	return redisdb.PartitionFor(f.Key, fs.DB.Partitions())
}

func (fs *Facts) learnArgs(f Fact, r row, known bool) (args learnArgs, _ error) {
	now := fs.clock.Now()
	at := f.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	sum := sha256.Sum256([]byte(string(f.Type) + "\x00" + f.Key))
	field := short(sum[:])[:16]
	data, account := event.Learned{Recipient: f.address(r), Later: f.Details}, f.Account
	data.Message = event.Message{QueueID: f.MessageID}
	to := r.envelope.To
	if data.Recipient != "" {
		to = []string{data.Recipient}
	}
	if known {
		data.Message, account = r.envelope.about(r.id, r.lane, r.gateway, to), r.envelope.Account
	}
	data.Envelope.To = slices.Concat([]string{}, to)
	id := newEventID(now)
	e, err := event.New(id, f.Type, account, at, data)
	if err != nil {
		return args, err
	}
	line, err := e.Line()
	if err != nil {
		return args, err
	}
	fact := storedFact{ID: id, Type: f.Type, At: millis(at), Details: f.Details}
	if data.Recipient != "" {
		fact.To = to
	}
	about := f.MessageID
	if about == "" {
		about = field // remembered by itself
	}
	packed, err := fs.jsons.pack(about, fact)
	return learnArgs{
		ID: about, Now: now, Field: field, Fact: packed, Lane: cmp.Or(r.lane, api.Transactional), Account: account,
		FactsMost: maxFacts, Counter: f.counts(), Event: line,
	}, err
}

// address is the recipient that a fact is about; empty where nobody can tell.
func (f Fact) address(r row) string {
	if f.Recipient != "" || f.Index < 0 || f.Index >= len(r.envelope.To) {
		return f.Recipient
	}
	return r.envelope.To[f.Index]
}

// counts is the counter that a fact adds to; empty: none.
func (f Fact) counts() string {
	name := factCounters[f.Type]
	if f.Details.Bot && name != "" {
		return name + "Bots"
	}
	return name
}

// Addressed is whom a message was for.
type Addressed struct {
	Known     bool // the outbox or its log remembers it
	Account   string
	MessageID string // the header Message-ID
	ListID    string
	To        []string
}

// Recipients reads whom messages were for, in the order of the ids.
func (fs *Facts) Recipients(ctx context.Context, ids []string) ([]Addressed, error) {
	facts := make([]Fact, len(ids))
	for i, id := range ids {
		facts[i].MessageID = id
	}
	about, err := fs.readAbout(ctx, facts)
	if err != nil {
		return nil, err
	}
	out := make([]Addressed, len(ids))
	for i, id := range ids {
		if r, ok := about[id]; ok {
			out[i] = Addressed{Known: true, Account: r.envelope.Account, MessageID: r.envelope.MessageID,
				ListID: r.envelope.ListID, To: r.envelope.To}
		}
	}
	return out, nil
}
