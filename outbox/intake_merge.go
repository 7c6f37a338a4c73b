package outbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/queue"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/suppression"
	"github.com/postroom/postroom/templates/batch"
)

const (
	mergeChunk    = 250 // entries that go to Redis together
	mergeAtOnce   = 4   // chunks under way
	mergePreviews = 10  // messages that a dry run shows
)

// merger is a mail merge on its way: one letter, and an entry for each message.
type merger struct {
	in       *Intake
	req      api.SubmitRequest
	door     string
	account  accounts.Sender
	letter   *source
	template *api.TemplateRef
	marks    marks
	whole    string // fingerprint of the request; empty when it has no key
	date     int64
	common   func() string // fingerprint of the request without its entries
	results  []api.MailMergeResult

	mu   sync.Mutex
	stop error // why no more entries are tried; nil: they are
}

// merge takes in a mail merge: one message for each entry, written from one letter. What is wrong with the request as a whole is its error;
// what is wrong with an entry stands in its result, and the others go on. A repetition under the key of the request answers what was
// answered first, also where the first one was cut off in the middle: it goes on from there.
func (in *Intake) merge(ctx context.Context, req api.SubmitRequest, account accounts.Sender, door string) (api.SubmitAnswer, error) {
	m := &merger{in: in, req: req, door: door, account: account, date: millis(in.clock.Now()), results: make([]api.MailMergeResult, len(req.MailMerge))}
	m.common = sync.OnceValue(func() string {
		common := m.req
		common.MailMerge = nil
		return fingerprint(common, "of its entries")
	})
	if err := m.begin(ctx); err != nil {
		return api.SubmitAnswer{}, err
	}
	answer := api.SubmitAnswer{MailMerge: m.results}
	if req.DryRun {
		return answer, m.preview(ctx)
	}
	if err := in.Admits(ctx); err != nil {
		return api.SubmitAnswer{}, err
	}
	var err error
	if answer.Idempotency, err = m.claim(ctx); err != nil {
		return api.SubmitAnswer{}, err
	}
	m.enter(ctx)
	if m.stop != nil && !slices.ContainsFunc(m.results, func(r api.MailMergeResult) bool { return r.Success }) {
		return api.SubmitAnswer{}, m.stop
	}
	return answer, nil
}

// begin checks the request as a whole and makes its letter.
func (m *merger) begin(ctx context.Context) error {
	in := m.in
	added, wrong := in.marksOf(m.req, m.account)
	m.marks = added
	wrong = slices.Concat(checkMerge(m.req), check(m.req, in.clock.Now()), wrong)
	l, version, err := in.letterOf(ctx, m.req, m.account)
	if err == nil {
		m.template = version
		m.letter, err = in.letters.source(ctx, l)
	}
	if err := joinFields(wrong, err); err != nil {
		return err
	}
	if err := in.passable(ctx, m.req, m.account); err != nil {
		return err
	}
	return m.weigh(ctx)
}

// checkMerge finds what can't stand beside mailMerge.
func checkMerge(req api.SubmitRequest) (wrong []fault.Field) {
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"to", len(req.To) > 0}, {"cc", len(req.CC) > 0}, {"bcc", len(req.BCC) > 0}, {"raw", len(req.Raw) > 0},
		{"envelope", req.Envelope != nil}, {"messageId", req.MessageID != ""}, {"render.params", req.Render != nil && len(req.Render.Params) > 0},
	} {
		if f.given {
			wrong = append(wrong, fault.Field{Key: f.key, Message: "can't be combined with mailMerge"})
		}
	}
	return wrong
}

// weigh writes the first message that can be written in full, which finds what is wrong with what all have in common: a file, a header, the size.
func (m *merger) weigh(ctx context.Context) error {
	for i := range m.req.MailMerge {
		slip, name := m.slip(i, m.in.idFor(m.account.ID, ""))
		if _, _, err := m.letter.writer.Check(ctx, slip, name); m.ofEntry(err) {
			continue
		}
		c, _, err := m.letter.writer.Render(ctx, slip, name)
		if err != nil {
			return err
		}
		if c.Size() > m.in.opts.MaxSize {
			return m.in.tooLarge(c.Size())
		}
		return nil
	}
	return nil
}

// ofEntry says whether an error of writing a message is about what its entry says. What is wrong with the rest is wrong for all of them.
func (m *merger) ofEntry(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return false
	}
	if f.Kind == fault.Unprocessable {
		return true
	}
	for _, field := range f.Fields {
		if !entryField(field.Key) {
			return false
		}
	}
	return f.Kind == fault.Invalid
}

// entryField says whether a field of a draft is one that an entry gives.
func entryField(key string) bool {
	return key == "messageId" || key == "params" || key == "subject" || strings.HasPrefix(key, "to")
}

// slip is what the message of an entry has of its own.
func (m *merger) slip(i int, id string) (batch.Personalization, batch.Identity) {
	entry := m.req.MailMerge[i]
	one := m.req
	one.MessageID = entry.MessageID
	return batch.Personalization{
		To: []message.Address{message.Address(entry.To)}, InReplyTo: m.req.InReplyTo, References: m.req.References, Params: entry.Params, Date: m.date,
	}, nameOf(one, m.letter.writer.Content().From, id)
}

// preview checks every entry and shows the messages of the first.
func (m *merger) preview(ctx context.Context) error {
	shown := 0
	for i := range m.results {
		slip, name := m.slip(i, m.in.idFor(m.account.ID, ""))
		c, _, err := m.letter.writer.Check(ctx, slip, name)
		if err == nil && shown < mergePreviews {
			shown++
			if c, err = m.written(ctx, i, c); err == nil {
				c.Raw, err = m.in.sign(ctx, m.account.DKIM, c)
			}
			if err == nil {
				m.results[i].Preview = c.Raw
			}
		}
		if err != nil {
			m.refuse(i, err)
			continue
		}
		m.results[i].Success, m.results[i].To, m.results[i].MessageID = true, m.req.MailMerge[i].To, c.MessageID
	}
	return ctx.Err()
}

// written writes the message of an entry that was checked, as it would be sent.
func (m *merger) written(ctx context.Context, i int, c *message.Composed) (*message.Composed, error) {
	in := m.in
	id := in.idFor(m.account.ID, "")
	slip, _ := m.slip(i, id)
	e := envelope{Account: m.account.ID, MessageID: c.MessageID, From: c.Envelope.From, To: c.Envelope.To, marks: m.marks}
	name, err := in.nameIn(id, e, m.letter.writer.Content())
	if err != nil {
		return nil, err
	}
	c, _, err = m.letter.writer.Render(ctx, slip, name)
	return c, err
}

// claim takes the key of the whole request, if it has one. What finds the key taken by another request must not queue anything.
func (m *merger) claim(ctx context.Context) (*api.IdempotencyStatus, error) {
	in, key := m.in, m.req.IdempotencyKey
	if key == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	m.whole = fingerprint(m.req, key)
	hash := keyHash(m.account.ID, key)
	name := in.keys.idempotency(redisdb.PartitionFor(hash, in.DB.Partitions()), hash)
	answer, err := in.DB.RunReplicated(ctx, claimScript, []string{name}, m.whole, int(in.opts.KeyRetention.Seconds())).Slice()
	switch {
	case err != nil:
		return nil, away(err, "claim the key of a mail merge")
	case answer[0] == "REUSED":
		return nil, keyReused()
	case answer[0] == "HIT":
		return &api.IdempotencyStatus{Key: key, Status: keyHit}, nil
	}
	return &api.IdempotencyStatus{Key: key, Status: "MISS"}, nil
}

// enter accepts the entries, some chunks of them at a time.
func (m *merger) enter(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(mergeAtOnce)
	for from := 0; from < len(m.results); from += mergeChunk {
		group.Go(func() error {
			m.chunk(ctx, from, min(from+mergeChunk, len(m.results)))
			return nil
		})
	}
	_ = group.Wait() // what goes wrong stands in the results
}

// placed is the message of an entry, by the entry's place.
type placed struct {
	at int
	submission
}

// chunk accepts some entries: two round trips for all of them, and two more where somebody may be suppressed.
func (m *merger) chunk(ctx context.Context, from, to int) {
	wanted := make([]placed, 0, to-from)
	for i := from; i < to; i++ {
		if stop := m.stopped(); stop != nil {
			m.refuse(i, stop)
			continue
		}
		s, err := m.submission(ctx, i)
		if err != nil {
			m.refuse(i, err)
			continue
		}
		wanted = append(wanted, placed{i, s})
	}
	ctx, cancel := context.WithTimeout(ctx, patienceFor(m.req))
	defer cancel()
	if len(wanted) > 0 && wanted[0].look != nil {
		wanted = m.accept(ctx, wanted)
	}
	m.accept(ctx, m.sift(ctx, wanted))
}

// accept accepts some entries, and gives back those in which somebody may be suppressed, to be sifted.
func (m *merger) accept(ctx context.Context, wanted []placed) (ask []placed) {
	in := m.in
	places, all := make([]int, 0, len(wanted)), make([]acceptance, 0, len(wanted))
	for _, w := range wanted {
		a, err := in.acceptance(w.submission)
		if err != nil {
			m.refuse(w.at, err)
			continue
		}
		places, all = append(places, w.at), append(all, a)
	}
	if err := in.shareAll(ctx, all...); err != nil {
		for _, i := range places {
			m.refuse(i, err)
		}
		return nil
	}
	pipe := in.DB.ReplicatedPipeline()
	answers := make([]*redis.Cmd, len(all))
	for n, a := range all {
		answers[n] = pipe.Script(acceptScript, a.keys, a.args...)
	}
	_ = pipe.Exec(ctx) // each script carries its own error
	return m.judge(ctx, places, all, answers)
}

// sift takes out the entries whose recipient must not be mailed. They are entered in the log.
func (m *merger) sift(ctx context.Context, wanted []placed) []placed {
	in := m.in
	if len(wanted) == 0 {
		return nil
	}
	all := wanted[0].envelope // of the same account, list and lane as the others
	all.To = make([]string, len(wanted))
	for n, w := range wanted {
		all.To[n] = w.envelope.To[0]
	}
	stopped, err := in.stops(ctx, all, wanted[0].lane, everybody(len(all.To)))
	pipe := in.DB.Pipeline()
	kept, gone := make([]placed, 0, len(wanted)), make([]placed, 0, len(stopped))
	for n, w := range wanted {
		entry := stopped[n]
		known := false
		if entry != nil && err == nil {
			known, err = in.keyKnown(ctx, w.submission)
		}
		switch {
		case err != nil:
			m.refuse(w.at, err)
		case entry == nil || known:
			kept = append(kept, w)
		case in.opts.RefuseSuppressed:
			m.refuse(w.at, suppressedFault(skipped(w.envelope, map[int]*suppression.Entry{0: entry})))
		default:
			if err := in.skipOn(ctx, pipe, w.submission, map[int]*suppression.Entry{0: entry}); err != nil {
				m.refuse(w.at, err)
				continue
			}
			gone = append(gone, w)
			m.results[w.at] = api.MailMergeResult{Success: true, To: m.req.MailMerge[w.at].To, Skipped: skipped(w.envelope, map[int]*suppression.Entry{0: entry})}
		}
	}
	if len(gone) == 0 {
		return kept
	}
	if err := pipe.Exec(ctx); err != nil {
		for _, w := range gone {
			m.refuse(w.at, away(err, "note that message "+w.id+" is not sent"))
		}
	}
	return kept
}

// judge reads what Redis answered to the entries of a chunk, and queues the tasks of those that are new. It gives back those that are to be
// sifted.
func (m *merger) judge(ctx context.Context, places []int, all []acceptance, answers []*redis.Cmd) (ask []placed) {
	in := m.in
	var fresh []acceptance
	var tasks []queue.Task
	for n, a := range all {
		first, err := in.judge(answers[n].Slice())
		if errors.Is(err, errUnshared) {
			in.letters.forget(a.partition, a.letter)
			var answer api.SubmitAnswer
			if answer, err = in.acceptFirst(ctx, a); err == nil {
				m.accepted(places[n], answer)
				continue
			}
		}
		if errors.Is(err, errAsk) {
			a.look = nil
			ask = append(ask, placed{places[n], a.submission})
			continue
		}
		if err != nil {
			m.refuse(places[n], err)
			continue
		}
		if a.looksAtMemory() {
			in.seen()
		}
		answer, isFresh := in.answer(a, first)
		m.accepted(places[n], answer)
		if isFresh {
			fresh, tasks = append(fresh, a), append(tasks, a.task)
		}
	}
	m.enqueue(ctx, fresh, tasks)
	return ask
}

// enqueue queues the tasks of messages that were accepted.
func (m *merger) enqueue(ctx context.Context, fresh []acceptance, tasks []queue.Task) {
	in := m.in
	if len(tasks) == 0 {
		return
	}
	for n, err := range in.Queue.Enqueue(ctx, tasks...) {
		if err == nil {
			in.queued.note(fresh[n].partition, fresh[n].answer.QueueID)
		}
		in.accepted(ctx, fresh[n])
	}
}

// submission is the message of an entry, checked.
func (m *merger) submission(ctx context.Context, i int) (submission, error) {
	entry, in := m.req.MailMerge[i], m.in
	key, print := m.key(i)
	id := in.idFor(m.account.ID, key)
	slip, name := m.slip(i, id)
	c, _, err := m.letter.writer.Check(ctx, slip, name)
	if err := joinFields(checkEntry(m.req, entry), err); err != nil {
		return submission{}, err
	}
	req := m.req
	if entry.SendAt != nil {
		req.SendAt = entry.SendAt
	}
	if len(entry.Metadata) > 0 {
		req.Metadata = entry.Metadata
	}
	req.IdempotencyKey = cmp.Or(entry.IdempotencyKey, req.IdempotencyKey)
	s := in.submission(req, m.account, composed{Composed: c, id: id, template: m.template, letter: m.letter, slip: slip, marks: m.marks})
	s.envelope.Source, s.envelope.Size = m.door, 0
	s.key, s.fingerprint = key, print
	s.look = in.question(s.envelope, s.lane)
	return s, nil
}

// checkEntry finds what is wrong with an entry beside its message.
func checkEntry(req api.SubmitRequest, entry api.MailMergeEntry) (fields []fault.Field) {
	wrong := func(key, format string, args ...any) {
		fields = append(fields, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	checkMetadata(entry.Metadata, wrong)
	if req.DeliverBy != nil && entry.SendAt != nil && req.DeliverBy.Before(*entry.SendAt) {
		wrong("sendAt", "must not be after deliverBy")
	}
	return fields
}

// key is under which an entry is accepted only once, and the fingerprint that goes with it: its own key, whatever else the merge brings, or one
// that the key of the request gives to its place, in this very request. Both are empty without a key.
func (m *merger) key(i int) (key, print string) {
	entry := m.req.MailMerge[i]
	switch {
	case entry.IdempotencyKey != "":
		return entry.IdempotencyKey, m.printOf(entry)
	case m.whole != "":
		return m.req.IdempotencyKey + "\x00" + strconv.Itoa(i), m.whole
	}
	return "", ""
}

// printOf is the fingerprint of an entry with a key of its own: of what it says, and of what is said for all.
func (m *merger) printOf(entry api.MailMergeEntry) string {
	entry.IdempotencyKey = ""
	sum := sha256.New()
	sum.Write([]byte(m.common()))
	if err := json.NewEncoder(sum).Encode(entry); err != nil {
		return "unreadable" // params or metadata that are no JSON; refused elsewhere
	}
	return short(sum.Sum(nil))
}

func (m *merger) accepted(i int, a api.SubmitAnswer) {
	m.results[i] = api.MailMergeResult{
		Success: true, To: m.req.MailMerge[i].To, MessageID: a.MessageID, QueueID: a.QueueID, SendAt: a.SendAt, Idempotency: a.Idempotency,
	}
}

// refuse notes why an entry was not accepted. When Redis is away or full, the entries that have not been tried yet are not.
func (m *merger) refuse(i int, err error) {
	r := api.MailMergeResult{To: m.req.MailMerge[i].To, StatusCode: api.StatusOf(fault.KindOf(err)), Error: "An internal server error occurred"}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		r.Error, r.Code = f.Message, f.Code
		for _, field := range f.Fields {
			key := strings.Replace(field.Key, "to[0]", "to", 1) // an entry is for one
			r.Fields = append(r.Fields, api.ProblemField{Key: key, Message: field.Message})
		}
	} else {
		m.in.log.Error("entry of a mail merge not accepted", "account", m.account.ID, "entry", i, "error", err)
	}
	m.results[i] = r
	if !fault.Is(err, fault.Unavailable) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stop = err
}

// stopped says why no more entries are tried.
func (m *merger) stopped() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stop
}
