package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates/batch"
	"github.com/postroom/postroom/templates/locale"
)

// Intake takes messages in: it checks a request, builds the message, makes it durable and queues its first task.
type Intake struct{ *store }

// Doors a message can come in by.
const (
	SourceAPI  = "api"
	SourceSMTP = "smtp"
)

// maxMetadata is the largest metadata object, in bytes of JSON (every event carries it).
const maxMetadata = 4 << 10

// Submit takes a message in: it checks the request, builds the message, makes it durable and queues it. A nil error means that the
// message will be seen through; see the package comment for what that promises.
//
// Faults: Invalid with every wrong field; NotFound for an account or gateway that does not exist; TooLarge; Unprocessable for an
// idempotency key used with another body; Unavailable while Redis is away or full, with the time to come back after.
func (in *Intake) Submit(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	return in.submitBy(ctx, req, SourceAPI)
}

// SubmitSMTP is Submit for a message that came in over SMTP.
func (in *Intake) SubmitSMTP(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	return in.submitBy(ctx, req, SourceSMTP)
}

func (in *Intake) submitBy(ctx context.Context, req api.SubmitRequest, door string) (api.SubmitAnswer, error) {
	if len(req.MailMerge) == 0 { // a merge has as many patiences as it needs
		within, cancel := context.WithTimeout(ctx, patienceFor(req))
		defer cancel()
		ctx = within
	}
	answer, err := in.submit(ctx, req, door)
	if fault.Is(err, fault.Unavailable) {
		in.metrics.accepted.WithLabelValues("refused").Inc()
	}
	return answer, err
}

// patience is how long a submit may take before it answers that Redis is away. After a time-out the message may have been accepted all
// the same; an idempotency key makes asking again safe.
const patience = 2 * time.Second

// patienceFor is that for a request: files take their time, to be composed as well as stored, on a machine or a disk that has others to serve.
func patienceFor(req api.SubmitRequest) time.Duration {
	const perSecond = 2 << 20
	size := len(req.Raw) + len(req.HTML) + len(req.Text)
	for _, a := range req.Attachments {
		size += len(a.Content)
	}
	return patience + time.Duration(size)*time.Second/perSecond
}

func (in *Intake) submit(ctx context.Context, req api.SubmitRequest, door string) (api.SubmitAnswer, error) {
	if err := in.clock.ready(ctx, in.DB.Client()); err != nil {
		return api.SubmitAnswer{}, away(err, "accept message")
	}
	account, err := in.Accounts.Resolve(ctx, req.Account)
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	if len(req.MailMerge) > 0 {
		return in.merge(ctx, req, account, door)
	}
	asked := req
	m, req, err := in.compose(ctx, req, account, in.idFor(account.ID, req.IdempotencyKey))
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	if err := in.passable(ctx, req, account); err != nil {
		return api.SubmitAnswer{}, err
	}
	switch {
	case m.letter == nil && m.marks.any():
		if req.DryRun {
			e := envelope{Account: account.ID, MessageID: m.MessageID, From: m.Envelope.From, To: m.Envelope.To, marks: m.marks}
			m.Raw, err = in.marked(ctx, in.idFor(account.ID, ""), e, account.DKIM, m.Raw)
		}
	case m.letter == nil || req.DryRun:
		m.Raw, err = in.sign(ctx, account.DKIM, m.Composed)
	}
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	if m.Size() > in.opts.MaxSize {
		return api.SubmitAnswer{}, in.tooLarge(m.Size())
	}
	if req.DryRun {
		return api.SubmitAnswer{Response: "Dry run", MessageID: m.MessageID, Preview: m.Raw}, nil
	}
	s := in.submission(req, account, m)
	s.envelope.Source, s.key, s.fingerprint = door, req.IdempotencyKey, fingerprint(asked, req.IdempotencyKey)
	s.id = cmp.Or(s.id, in.idFor(account.ID, s.key)) // a raw message may have brought its key
	return in.takeIn(ctx, s)
}

// passable says whether there is a relay that the messages of a request could take.
func (in *Intake) passable(ctx context.Context, req api.SubmitRequest, account accounts.Sender) error {
	if req.Gateway != "" {
		return in.gatewayExists(ctx, req.Gateway)
	}
	return account.Ready(cmp.Or(req.Lane, api.Transactional))
}

// composed is a message that was built, and what it was built from where it is to be written anew each time it is needed.
type composed struct {
	*message.Composed
	id       string // empty: not known yet
	template *api.TemplateRef
	letter   *source // nil: the message is its own content
	slip     batch.Personalization
	marks    marks
}

// submission puts a composed message in the terms of the record.
func (in *Intake) submission(req api.SubmitRequest, account accounts.Sender, m composed) submission {
	s := submission{
		id: m.id, envelope: envelope{
			Account: account.ID, MessageID: m.MessageID, From: m.Envelope.From, To: m.Envelope.To, Subject: m.Subject,
			Key: req.IdempotencyKey, Tags: req.Tags, Metadata: req.Metadata, DeliverBy: req.DeliverBy, DSN: req.DSN,
			UTF8: m.SMTPUTF8, EightBit: m.EightBit, RequireTLS: req.RequireTLS, Size: m.Size(), Template: m.template, marks: m.marks,
		},
		content: m.Raw, letter: m.letter, slip: m.slip, lane: cmp.Or(req.Lane, api.Transactional), gateway: req.Gateway, attempts: req.DeliveryAttempts,
	}
	from := strings.ToLower(m.Envelope.From)
	s.envelope.Returns = in.opts.BounceDomain != "" && from != "" && (from == strings.ToLower(m.From.Address) || from == strings.ToLower(account.Email))
	if s.attempts == 0 {
		s.attempts = in.opts.Attempts()
	}
	if req.SendAt != nil {
		s.sendAt = *req.SendAt
	}
	return s
}

// compose builds the message a request asks for. A raw message may carry part of the request in control headers; the request that comes
// back includes them.
func (in *Intake) compose(ctx context.Context, req api.SubmitRequest, account accounts.Sender, id string) (composed, api.SubmitRequest, error) {
	now := in.clock.Now()
	var m composed
	var err error
	if len(req.Raw) > 0 {
		m.Composed, req, err = composeRaw(req, account, now)
	}
	added, wrong := in.marksOf(req, account)
	switch {
	case len(req.Raw) > 0:
		if err == nil && added.any() {
			added.Base, added.Domain = in.publicURL(req), domainOf(m.From.Address)
			wrong = append(wrong, added.single(m.Composed)...)
		}
	case lettered(req) || added.any() && len(wrong) == 0:
		m, err = in.composeLetter(ctx, req, account, id, added, now)
	default:
		m, err = in.composeWords(ctx, req, account, id, now)
	}
	m.marks = added
	return m, req, joinFields(append(check(req, now), wrong...), err)
}

// composeRaw makes a message that somebody else built fit to be sent.
func composeRaw(req api.SubmitRequest, account accounts.Sender, now time.Time) (*message.Composed, api.SubmitRequest, error) {
	c, in, err := message.FromRaw(req.Raw, overrideOf(req, draftOf(req, account, now)), rand.Reader)
	return c, withControl(req, in), err
}

// composeWords builds a message whose words stand in the request, filled in where it asks for that.
func (in *Intake) composeWords(ctx context.Context, req api.SubmitRequest, account accounts.Sender, id string, now time.Time) (m composed, err error) {
	m.id = id
	if req, m.template, err = in.fillIn(ctx, req, account); err != nil {
		return m, err
	}
	d := draftOf(req, account, now)
	d.MessageID = cmp.Or(d.MessageID, ownMessageID(id, d.From))
	m.Composed, err = message.Compose(d, rand.Reader)
	return m, err
}

// composeLetter writes a message from a letter, as it will be written when it is sent.
func (in *Intake) composeLetter(ctx context.Context, req api.SubmitRequest, account accounts.Sender, id string, added marks, now time.Time) (m composed, err error) {
	m.id = id
	l, version, err := in.letterOf(ctx, req, account)
	if err != nil {
		return m, err
	}
	name := nameOf(req, l.From, id)
	m.template, m.slip = version, slipOf(req, millis(now))
	if m.letter, err = in.letters.source(ctx, l); err != nil {
		return m, err
	}
	if m.Composed, _, err = m.letter.writer.Render(ctx, m.slip, name); err != nil {
		return m, err
	}
	if wrong := added.single(m.Composed); len(wrong) > 0 {
		return m, fault.InvalidFields(wrong)
	}
	if !req.DryRun { // nobody reads it now
		return m, nil
	}
	e := envelope{Account: account.ID, MessageID: m.MessageID, From: m.Envelope.From, To: m.Envelope.To, marks: added}
	if name, err = in.nameIn(id, e, m.letter.writer.Content()); err != nil {
		return m, err
	}
	m.Composed, _, err = m.letter.writer.Render(ctx, m.slip, name) // again, for now it is known whom it is for
	return m, err
}

// overrideOf is what a request changes in the raw message it brings: the fields it names, and the author where there is none.
func overrideOf(req api.SubmitRequest, d message.Draft) message.Override {
	o := message.Override{
		Date: d.Date, DefaultFrom: d.From, To: d.To, Cc: d.Cc, Bcc: d.Bcc, ReplyTo: d.ReplyTo, Envelope: d.Envelope, Subject: d.Subject,
		MessageID: d.MessageID, InReplyTo: d.InReplyTo, References: d.References, Headers: d.Headers,
	}
	if req.From != nil {
		o.From = d.From
	}
	return o
}

// withControl completes a request with what its raw message says about its own delivery. What the request says goes first.
func withControl(req api.SubmitRequest, in message.Control) api.SubmitRequest {
	if req.SendAt == nil && !in.SendAt.IsZero() {
		req.SendAt = &in.SendAt
	}
	req.DeliveryAttempts = cmp.Or(req.DeliveryAttempts, in.DeliveryAttempts)
	req.Gateway = cmp.Or(req.Gateway, in.Gateway)
	req.IdempotencyKey = cmp.Or(req.IdempotencyKey, in.IdempotencyKey)
	if req.TrackingEnabled == nil {
		req.TrackingEnabled = in.TrackingEnabled
	}
	return req
}

// check finds what is wrong with a request beside its message, which package message checks.
func check(req api.SubmitRequest, now time.Time) []fault.Field {
	var fields []fault.Field
	wrong := func(key, format string, args ...any) {
		fields = append(fields, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
	}
	if len(req.Raw) > 0 && (req.HTML != "" || req.Text != "" || len(req.Attachments) > 0) {
		wrong("raw", "can't be combined with html, text or attachments")
	}
	checkWords(req, wrong)
	if _, err := locale.Zone(req.TZ); err != nil {
		wrong("tz", "%s", err)
	}
	checkMetadata(req.Metadata, wrong)
	if req.DeliverBy != nil && !req.DeliverBy.After(now) {
		wrong("deliverBy", "must be in the future")
	}
	if req.DeliverBy != nil && req.SendAt != nil && req.DeliverBy.Before(*req.SendAt) {
		wrong("deliverBy", "must not be before sendAt")
	}
	if req.DSN != nil {
		checkDSN(*req.DSN, wrong)
	}
	for i, tag := range req.Tags {
		if tag == "" || len(tag) > 128 {
			wrong(fmt.Sprintf("tags[%d]", i), "must have 1 to 128 characters")
		}
	}
	return fields
}

func checkMetadata(metadata json.RawMessage, wrong func(key, format string, args ...any)) {
	if len(metadata) > maxMetadata {
		wrong("metadata", "must be at most %d bytes of JSON", maxMetadata)
	}
	if len(metadata) > 0 && !strings.HasPrefix(strings.TrimSpace(string(metadata)), "{") {
		wrong("metadata", "must be an object")
	}
}

// maxEnvelopeID is the longest ENVID of RFC 3461 section 4.4.
const maxEnvelopeID = 100

// checkDSN finds what no relay could be told about the notifications that are wanted (RFC 3461). Said here, it is the client's to mend;
// said by the sender, it would be the end of an accepted message.
func checkDSN(dsn api.DSN, wrong func(key, format string, args ...any)) {
	if len(dsn.ID) > maxEnvelopeID || strings.ContainsFunc(dsn.ID, func(c rune) bool { return c < ' ' || c > '~' }) {
		wrong("dsn.id", "must have at most %d characters, all of them printable ASCII", maxEnvelopeID)
	}
	if len(dsn.Notify) > 1 && slices.Contains(dsn.Notify, "never") {
		wrong("dsn.notify", "can't have anything beside never")
	}
	if dsn.Recipient == "" {
		return
	}
	if _, err := message.NormalizeAddress(dsn.Recipient); err != nil {
		wrong("dsn.recipient", "%s", err)
	}
}

// joinFields reports the wrong fields of the request and of its message together.
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

// draftOf puts a request in the terms of package message.
func draftOf(req api.SubmitRequest, account accounts.Sender, now time.Time) message.Draft {
	d := message.Draft{
		From: message.Address{Name: account.Name, Address: account.Email}, To: people(req.To), Cc: people(req.CC), Bcc: people(req.BCC),
		ReplyTo: people(req.ReplyTo), Date: now, Subject: req.Subject, Text: req.Text, HTML: req.HTML, PreviewText: req.PreviewText,
		MessageID: req.MessageID, InReplyTo: req.InReplyTo, References: req.References, Headers: message.HeadersOf(req.Headers),
	}
	if req.From != nil {
		d.From = message.Address(*req.From)
	}
	if req.Envelope != nil {
		d.Envelope = &message.Envelope{From: req.Envelope.From, To: req.Envelope.To}
	}
	for _, a := range req.Attachments {
		d.Attachments = append(d.Attachments, message.Attachment{
			Filename: a.Filename, Content: a.Content, ContentType: a.ContentType, Disposition: a.ContentDisposition, CID: a.CID,
		})
	}
	return d
}

func people(list api.Addresses) []message.Address {
	out := make([]message.Address, len(list))
	for i, a := range list {
		out[i] = message.Address(a)
	}
	return out
}

// fingerprint tells two requests under one idempotency key apart; empty without a key. The key itself is no part of it.
func fingerprint(req api.SubmitRequest, key string) string {
	if key == "" {
		return ""
	}
	req.IdempotencyKey = ""
	sum := sha256.New()
	if err := json.NewEncoder(sum).Encode(hashFiles(sum, req)); err != nil {
		return "unreadable" // metadata or reference that is no JSON; refused elsewhere
	}
	return short(sum.Sum(nil))
}

// keyHash names an idempotency key in Redis: keys are as long as their senders like, and each account has its own.
func keyHash(account, key string) string {
	sum := sha256.Sum256([]byte(account + "\x00" + key))
	return short(sum[:])
}

// hashFiles adds the files of a request to a hash and gives the request without them: in its JSON they would be held three times over.
func hashFiles(sum io.Writer, req api.SubmitRequest) api.SubmitRequest {
	move := func(file *[]byte) {
		_ = binary.Write(sum, binary.BigEndian, int64(len(*file))) // a hash takes everything
		_, _ = sum.Write(*file)
		*file = nil
	}
	if len(req.Raw) > 0 {
		move(&req.Raw)
	}
	req.Attachments = slices.Clone(req.Attachments)
	for i := range req.Attachments {
		move(&req.Attachments[i].Content)
	}
	return req
}
