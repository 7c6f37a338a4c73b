package outbox

import (
	"context"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
)

// recordFields are the fields of a message's hash that its row needs, in the order readRow takes them.
var recordFields = []string{"state", "lane", "created", "due", "scheduled", "attempts", "max", "gateway", "doubts", "fence", "epoch", "reason", "letter"}

// row is a message as read from Redis.
type row struct {
	id       string
	state    string // of an ended message: its result
	ended    int64  // 0: it is live
	fence    string
	epoch    string // of its task
	lane     api.Lane
	created  int64
	due      int64
	planned  int64 // first attempt
	attempts int
	max      int
	gateway  string
	doubts   int
	reason   string // why it waits, when that is a limit or its account
	letter   string // what it is written from; empty: its content is the message
	envelope envelope
	status   status
}

// Get answers a live message, with the log of its attempts. A message that was sent, cancelled or failed is gone: the fault says which,
// and where its dead letter is.
func (b *Outbox) Get(ctx context.Context, id string) (api.OutboxMessage, error) {
	r, err := b.read(ctx, id)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	if r.state == stateFailed {
		return api.OutboxMessage{}, gone(r)
	}
	paused, err := b.pausedLanes(ctx)
	if err != nil {
		return api.OutboxMessage{}, err
	}
	m := r.show(paused[r.lane])
	m.Log = r.status.Log
	return m, nil
}

// Content answers the message itself, as it goes to the relay.
func (b *Outbox) Content(ctx context.Context, id string) ([]byte, error) {
	r, err := b.read(ctx, id)
	if err != nil {
		return nil, err
	}
	if r.state == stateFailed {
		return nil, gone(r)
	}
	return b.contentOf(ctx, r)
}

// contentOf reads the content of a message that was there a moment ago.
func (b *Outbox) contentOf(ctx context.Context, r row) ([]byte, error) {
	p, _ := partitionOf(r.id, b.DB.Partitions())
	packed, err := b.DB.Client().Get(ctx, b.store.content(p, r.id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, unknownMessage(r.id)
	}
	if err != nil {
		return nil, away(err, "read content of message "+r.id)
	}
	if r.letter == "" {
		raw, err := b.codec.unpack(packed, r.envelope.Size)
		if err != nil || !r.envelope.marks.any() {
			return raw, err
		}
		return b.marked(ctx, r.id, r.envelope, raw)
	}
	m, _, err := b.rewrite(ctx, p, r, packed)
	if errors.Is(err, errNoLetter) {
		return nil, fault.Wrap(err, fault.Conflict, "ContentGone", "What message %s is written from was taken out of Redis", r.id)
	}
	if err != nil {
		return nil, err
	}
	return m.Raw, nil
}

// AccountOf answers the account of a message, also of one that ended, as long as that is remembered. Unknown: "".
func (b *Outbox) AccountOf(ctx context.Context, id string) (string, error) {
	p, ok := partitionOf(id, b.DB.Partitions())
	if !ok {
		return "", nil
	}
	account, err := b.DB.Client().HGet(ctx, b.store.message(p, id), "account").Result()
	if err == nil {
		return account, nil
	}
	if !errors.Is(err, redis.Nil) {
		return "", away(err, "read account of message "+id)
	}
	r, _, err := b.trace(ctx, p, id)
	return r.envelope.Account, err
}

// read reads one live message, or says what became of it.
func (b *Outbox) read(ctx context.Context, id string) (row, error) {
	p, err := b.store.place(id)
	if err != nil {
		return row{}, err
	}
	rows, err := b.readRows(ctx, []entry{{id: id}})
	if err != nil {
		return row{}, away(err, "read message "+id)
	}
	if len(rows) == 1 {
		return rows[0], nil
	}
	past, known, err := b.trace(ctx, p, id)
	switch {
	case err != nil:
		return row{}, err
	case !known:
		return row{}, unknownMessage(id)
	}
	return row{}, gone(past)
}

// gone is the answer about a message that is no longer in the outbox, and where to read on: a dead letter, or what the log has.
func gone(r row) error {
	var f *fault.Error
	switch r.state {
	case resultSent:
		f = fault.New(fault.NotFound, "MessageSent", "Message %s was sent", r.id)
	case resultFailed:
		f = fault.New(fault.NotFound, "MessageFailed", "Message %s failed for good", r.id)
	case resultSuppressed:
		f = fault.New(fault.NotFound, "MessageSuppressed", "Message %s was not sent: its recipients must not be mailed", r.id)
	default:
		f = fault.New(fault.NotFound, "MessageCancelled", "Message %s was cancelled", r.id)
	}
	f.Details = map[string]any{"message": "/v1/messages/" + r.id}
	if r.ended == 0 {
		f.Details["deadLetter"] = "/v1/dead-letters/" + r.id
		return f
	}
	f.Details["at"] = fromMillis(r.ended)
	if said := r.response(); said != "" {
		f.Details["response"] = said
	}
	return f
}

// response is the relay's last reply that took the message; empty while none did.
func (r row) response() string {
	said := ""
	for _, one := range r.status.Recipients {
		if one.Status == rcptSent {
			said = one.Response
		}
	}
	return said
}

// rows reads the messages of a page.
func (b *Outbox) rows(ctx context.Context, entries []entry, paused map[api.Lane]bool) ([]api.OutboxMessage, error) {
	rows, err := b.readRows(ctx, entries)
	if err != nil {
		return nil, err
	}
	out := make([]api.OutboxMessage, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.show(paused[r.lane]))
	}
	return out, nil
}

// readRows reads messages in one round trip, in order; those that ended meanwhile are left out.
func (b *Outbox) readRows(ctx context.Context, entries []entry) ([]row, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	pipe := b.DB.Client().Pipeline()
	hashes, envelopes, statuses := make([]*redis.SliceCmd, len(entries)), make([]*redis.StringCmd, len(entries)), make([]*redis.StringCmd, len(entries))
	for i, e := range entries {
		p, _ := partitionOf(e.id, b.DB.Partitions())
		hashes[i] = pipe.HMGet(ctx, b.store.message(p, e.id), recordFields...)
		envelopes[i] = pipe.Get(ctx, b.store.envelope(p, e.id))
		statuses[i] = pipe.Get(ctx, b.store.status(p, e.id))
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(entries))
	for i, e := range entries {
		if envelopes[i].Err() != nil || hashes[i].Val()[0] == nil {
			continue
		}
		r, err := b.readRow(e.id, texts(hashes[i]), envelopes[i].Val(), statuses[i].Val())
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (b *Outbox) readRow(id string, f []string, env, st string) (row, error) {
	n := make([]int64, len(f))
	for i := range f {
		n[i], _ = strconv.ParseInt(f[i], 10, 64)
	}
	r := row{
		id: id, state: f[0], lane: api.Lane(f[1]), created: n[2], due: n[3], planned: n[4], attempts: int(n[5]), max: int(n[6]),
		gateway: f[7], doubts: int(n[8]), fence: f[9], epoch: f[10], reason: f[11], letter: f[12],
	}
	if err := b.jsons.unpack(id, []byte(env), &r.envelope); err != nil {
		return r, err
	}
	var err error
	r.status, err = b.jsons.unpackStatus(id, st, r.envelope)
	return r, err
}

// mayBeThere says whether any attempt so far died between the final dot and the reply, so that the message may have arrived.
func (r row) mayBeThere() bool { return r.doubts > 0 || r.status.doubtful() > 0 }

// show puts a message in the words of the API.
func (r row) show(paused bool) api.OutboxMessage {
	m := api.OutboxMessage{
		QueueID: r.id, Account: r.envelope.Account, Source: r.envelope.Source, MessageID: r.envelope.MessageID,
		Envelope: api.Envelope{From: r.envelope.From, To: r.envelope.To}, Subject: r.envelope.Subject,
		Created: fromMillis(r.created), Scheduled: fromMillis(r.planned), AttemptsMade: r.attempts, Attempts: r.max,
		State: shown(r.state, paused), Recipients: r.recipients(), IdempotencyKey: r.envelope.Key, Lane: r.lane, Tags: r.envelope.Tags,
		Metadata: r.envelope.Metadata, InDoubt: max(r.doubts, r.status.doubtful()), DeliverBy: r.envelope.DeliverBy, Progress: r.progress(), Reason: r.reason,
		Template: r.envelope.Template,
	}
	if r.gateway != "" {
		m.Gateway = &r.gateway
	}
	if r.state != stateFailed && r.ended == 0 {
		due := fromMillis(r.due)
		m.NextAttempt.Time = &due
	}
	return m
}

func (r row) progress() api.Progress {
	switch {
	case r.state == stateActive:
		return api.Progress{Status: "processing"}
	case r.status.Last != nil:
		return api.Progress{Status: "error", Error: r.fault()}
	}
	return api.Progress{Status: "queued"}
}

// fault is what the last attempt failed with; nil when it did not, or none was made.
func (r row) fault() *api.DeliveryFault {
	last := r.status.Last
	if last == nil {
		return nil
	}
	f := &api.DeliveryFault{Message: last.Message, Code: last.Code, AccountTrouble: last.Account}
	if last.SMTP != 0 {
		f.StatusCode = &last.SMTP
	}
	return f
}

func (r row) recipients() []api.RecipientStatus {
	out := make([]api.RecipientStatus, len(r.envelope.To))
	for i, to := range r.envelope.To {
		s := r.status.Recipients[i]
		out[i] = api.RecipientStatus{Address: to, Status: s.Status, Response: s.Response, Attempts: s.Attempts}
	}
	return out
}
