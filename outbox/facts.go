package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/redisdb"
)

// FactResult is the result of recording a fact.
type FactResult int

// The results of recording a fact.
const (
	FactRecorded FactResult = iota // recorded, with its event
	FactKnown                      // recorded before
	FactLimit                      // refused: the message has too many facts for one of its kind
	// refused: the message is unknown and no account is given, or the person was erased
	FactUnmatched
)

// Opens and clicks of a message are recorded until it has maxFacts facts, and maxFactsEach for each
// recipient: enough for a reader who opens an email every day for half a year. That bounds what a bot can
// store. Deliveries and delays are recorded until it has twice as many. All others are always recorded,
// because their reporters proved who they are.
const maxFacts, maxFactsEach = 200, 10

// mostFacts returns how many facts a message to a number of recipients may have before it accepts no more of
// a type; 0 means any number.
func mostFacts(kind event.Type, recipients int) int {
	most := maxFacts + maxFactsEach*recipients
	switch kind {
	case event.TrackOpen, event.TrackClick:
		return most
	case event.MessageDelivered, event.MessageDeferred, event.MessageReported:
		return 2 * most
	}
	return 0
}

// Facts records what becomes known about messages after a relay accepted them.
type Facts struct{ *store }

// RecordFacts records facts about messages and writes their events. The results are in the order of the
// facts. A fact that is recorded again makes no second event, for as long as its message is in the log and
// three days after. An error means that some facts may not be recorded; it is safe to record all of them
// again.
func (fs *Facts) RecordFacts(ctx context.Context, facts []Fact) ([]FactResult, error) {
	about, err := fs.readAbout(ctx, facts)
	if err != nil {
		return nil, err
	}
	pipe := fs.DB.Pipeline()
	results, answers := make([]FactResult, len(facts)), make([]*redisdb.Reply[outcomeWord], len(facts))
	erased, err := fs.erased(ctx, facts, about)
	if err != nil {
		return nil, err
	}
	for i, f := range facts {
		r, known := about[f.MessageID]
		if !known && f.Account == "" || erased[i] {
			results[i] = FactUnmatched
			continue
		}
		args, err := fs.factArgs(f, r, known)
		if err != nil {
			return nil, err
		}
		answers[i] = factScript.Add(pipe, []string{fs.keys.message(fs.partitionFor(f), args.ID)}, args)
	}
	if err := pipe.Exec(ctx); err != nil {
		return nil, redisError(err, "record reports about messages")
	}
	for i, answer := range answers {
		if answer == nil {
			continue
		}
		read, _ := answer.Read() // an error would be Exec's
		switch read.Word {
		case "AGAIN":
			results[i] = FactKnown
		case "FULL":
			results[i] = FactLimit
		default:
			fs.mail.fact(ctx, facts[i])
		}
	}
	return results, nil
}

// erased reports which facts name people who were erased. They aren't stored: no one may know whose they are.
func (fs *Facts) erased(ctx context.Context, facts []Fact, about map[string]row) ([]bool, error) {
	gone := make([]bool, len(facts))
	if fs.Suppressions == nil {
		return gone, nil
	}
	named := map[string][]int{} // by account
	for i, f := range facts {
		if f.Recipient != "" {
			account := cmp.Or(about[f.MessageID].envelope.Account, f.Account)
			named[account] = append(named[account], i)
		}
	}
	for account, which := range named {
		addresses := make([]string, len(which))
		for n, i := range which {
			addresses[n] = facts[i].Recipient
		}
		found, err := fs.Suppressions.Erased(ctx, account, addresses...)
		if err != nil {
			return nil, err
		}
		for n, i := range which {
			gone[i] = found[n]
		}
	}
	return gone, nil
}

// readAbout reads the messages of facts, live or in the log.
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
		return nil, redisError(err, "read the messages of reports")
	}
	about := make(map[string]row, len(rows))
	for _, r := range rows {
		about[r.id] = r
	}
	return about, nil
}

// partitionFor returns the partition of a fact's message, or a partition chosen by its key if it has none.
func (fs *Facts) partitionFor(f Fact) int {
	if p, ok := partitionOf(f.MessageID, fs.DB.Partitions()); ok {
		return p
	}
	return redisdb.PartitionFor(f.Key, fs.DB.Partitions())
}

func (fs *Facts) factArgs(f Fact, r row, known bool) (args factArgs, _ error) {
	now := fs.clock.Now()
	at := f.At
	if at.IsZero() || at.After(now) {
		at = now
	}
	sum := sha256.Sum256([]byte(string(f.Type) + "\x00" + f.Key))
	field := short(sum[:])[:16]
	data, account := event.Learned{Recipient: f.address(r), Later: f.Details}, f.Account
	data.Message = event.Message{QueueID: f.MessageID, Metadata: noMetadata, Tags: []string{}}
	to := r.envelope.To
	if data.Recipient != "" {
		to = []string{data.Recipient}
	}
	if known {
		data.Message, account = r.about(nil), r.envelope.Account
		if n := len(r.status.Log); n > 0 {
			data.Gateway, data.LocalAddress = r.status.Log[n-1].Gateway, r.status.Log[n-1].Address
		}
	}
	data.Envelope.To = slices.Concat([]string{}, to)
	if f.Campaign != nil {
		data.Campaign = f.Campaign.of()
	}
	id := newEventID(now)
	e, err := event.New(id, f.Type, account, at, data)
	if err != nil {
		return args, err
	}
	e.Quiet = f.Campaign.Quiet(f.Type) || r.envelope.Campaign.Quiet(f.Type)
	e.Trace = r.envelope.Trace
	line, err := e.Line()
	if err != nil {
		return args, err
	}
	fact := storedFact{ID: id, Type: f.Type, At: redisdb.Millis(at), Details: f.Details}
	if data.Recipient != "" {
		fact.To = to
	}
	about := f.MessageID
	about = cmp.Or(about, field) // it is stored on its own
	once := sha256.Sum256(fmt.Appendf(nil, "%s %s %t %s", f.Type, f.Details.BounceType, f.Details.Bot,
		data.Recipient))
	packed, err := fs.jsons.pack(about, fact)
	return factArgs{
		ID: about, Now: now, Field: field, Fact: packed, Lane: cmp.Or(r.lane, api.Transactional), Account: account,
		FactsMost: mostFacts(f.Type, len(r.envelope.To)), Counter: f.counter(), Once: "#" + short(once[:])[:8],
		Event: line, Created: r.created, Outcome: f.outcome(), Weight: slices.Index(outcomes, f.outcome()) + 1,
	}, err
}

// outcome returns the message status that a fact reports, or "".
func (f Fact) outcome() api.MessageStatus {
	if f.Details.Bot {
		return ""
	}
	return api.MessageStatus(factCounters[f.Type])
}

// address is the recipient of a fact; "" if it is not known.
func (f Fact) address(r row) string {
	if f.Recipient != "" || f.Index < 0 || f.Index >= len(r.envelope.To) {
		return f.Recipient
	}
	return r.envelope.To[f.Index]
}

// counter is the counter that a fact adds to; "" if none.
func (f Fact) counter() string {
	name := factCounters[f.Type]
	if f.Details.Bot && name != "" {
		return name + "Bots"
	}
	return name
}

// Addressed are the recipients of a message.
type Addressed struct {
	Known     bool // the message is in the outbox or in the log
	Account   string
	MessageID string // the header Message-ID
	ListID    string
	To        []string

	id     string
	hashes []string // the recipients' hashes, if an unknown message had several
}

// Went reports whether a message that is not known any more, and had several recipients, went to an address.
func (a Addressed) Went(address string) bool {
	return slices.Contains(a.hashes, recipientHash(a.id, address))
}

// Recipients returns the recipients of messages, in the order of the ids. If a message had several recipients
// and is no longer in the log, it returns the account, and Went works for 400 days.
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
	return out, fs.readHashes(ctx, ids, out)
}

// readHashes reads the recipients' hashes for messages that are not known.
func (fs *Facts) readHashes(ctx context.Context, ids []string, all []Addressed) error {
	pipe, found := fs.DB.Client().Pipeline(), make([]*redis.StringCmd, len(ids))
	for i, id := range ids {
		if p, ok := partitionOf(id, fs.DB.Partitions()); ok && !all[i].Known {
			found[i] = pipe.Get(ctx, fs.keys.reference(p, referenceHash(id)))
		}
	}
	if pipe.Len() == 0 {
		return nil
	}
	if err := execRead(ctx, pipe); err != nil {
		return redisError(err, "read hashes of recipients")
	}
	for i, cmd := range found {
		if cmd != nil && cmd.Val() != "" {
			parts := strings.Split(cmd.Val(), ",")
			all[i] = Addressed{Account: parts[0], id: ids[i], hashes: parts[1:]}
		}
	}
	return nil
}

// Lookup finds messages by reference: a Message-ID in angle brackets that Postroom did not make (see
// MessageOf), or the Reference that package provider makes of a provider's id. It returns their proofs in the
// order of the references, "" for an unknown one; MessageOf has their ids. A reference is stored when a relay
// accepts the message, for Options.KeepReferences.
func (fs *Facts) Lookup(ctx context.Context, references []string) ([]string, error) {
	pipe := fs.DB.Client().Pipeline()
	found := make([][]*redis.StringCmd, len(references))
	for i, reference := range references {
		for p := range fs.DB.Partitions() {
			found[i] = append(found[i], pipe.Get(ctx, fs.keys.reference(p, referenceHash(reference))))
		}
	}
	if err := execRead(ctx, pipe); err != nil && len(references) > 0 {
		return nil, redisError(err, "look up messages by reference")
	}
	proofs := make([]string, len(references))
	for i, all := range found {
		for _, cmd := range all {
			proofs[i] = cmp.Or(cmd.Val(), proofs[i])
		}
	}
	return proofs, nil
}
