package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	mathrand "math/rand/v2"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/outbox/templates/render"
)

// prepare makes the content of the batch ready to be rendered, and to be stored if it will be.
func (b *Batch) prepare(ctx context.Context) error {
	sh := b.shared
	c := render.Content{
		Source: render.Source{Subject: sh.Subject, PreviewText: sh.PreviewText, HTML: sh.HTML, Text: sh.Text},
		Plain:  sh.Plain, Strict: b.in.opts.StrictWords,
		Account: render.Person{Name: b.account.Name, Address: b.account.Email}, ServiceURL: b.in.publicURL(sh),
		Locale: cmp.Or(sh.Locale, b.account.Locale), TZ: cmp.Or(sh.TZ, b.account.TZ), From: b.author(),
		ReplyTo: sh.ReplyTo, Headers: sh.Headers, Attachments: sh.Attachments,
	}
	if sh.Template != "" {
		if b.in.Templates == nil {
			return fault.New(fault.NotFound, "TemplateNotFound", "Requested template was not found [%s]", sh.Template)
		}
		t, err := b.in.Templates.Template(ctx, b.account.ID, sh.Template, c.Locale)
		if err != nil {
			return err
		}
		b.template = &api.TemplateRef{ID: t.ID, Version: t.Version}
		c.Source, c.Options, c.Strict = t.Source, t.Options, t.Strict
		c.Source.Subject = cmp.Or(sh.Subject, c.Source.Subject)
		c.Source.PreviewText = cmp.Or(sh.PreviewText, c.Source.PreviewText)
	} else {
		c.Source.Format = render.Format(sh.Format)
	}
	if sh.Strict != nil {
		c.Strict = *sh.Strict
	}
	var err error
	if b.stored {
		b.content, err = b.in.shared.prepare(ctx, c)
		return err
	}
	b.content = &sharedContent{}
	b.content.renderer, err = render.New(c)
	return err
}

func (b *Batch) author() message.Address {
	if b.shared.From != nil {
		return *b.shared.From
	}
	return message.Address{Name: b.account.Name, Address: b.account.Email}
}

func (b *Batch) lane() api.Lane { return cmp.Or(b.shared.Lane, api.Transactional) }

// priority is high, low or, if it is normal, empty.
func (b *Batch) priority() api.Priority {
	if b.shared.Priority == api.Normal {
		return ""
	}
	return b.shared.Priority
}

// composeRaw makes a raw message fit to be sent. Control headers in it complete settings and entry where
// these are empty.
func (b *Batch) composeRaw(e *Entry) error {
	sh := &b.shared
	o := message.Override{
		Date: b.began, DefaultFrom: message.Address{Name: b.account.Name, Address: b.account.Email},
		To: e.To, Cc: e.Cc, Bcc: e.Bcc, ReplyTo: sh.ReplyTo, Envelope: e.Envelope, Subject: sh.Subject,
		MessageID: e.MessageID, InReplyTo: e.InReplyTo, References: e.References, Headers: sh.Headers,
	}
	if sh.From != nil {
		o.From = *sh.From
	}
	o.Zone, _ = schedule.Zone(sh.TZ)
	c, control, err := message.FromRaw(sh.Raw, o, rand.Reader)
	b.raw = c
	if e.SendAt == nil && !control.SendAt.IsZero() {
		e.SendAt = &control.SendAt
	}
	e.Key = cmp.Or(e.Key, control.IdempotencyKey)
	sh.Attempts = cmp.Or(sh.Attempts, control.DeliveryAttempts)
	sh.Gateway = cmp.Or(sh.Gateway, control.Gateway)
	sh.Lane = cmp.Or(sh.Lane, api.Lane(control.Lane))
	sh.Priority = cmp.Or(sh.Priority, api.Priority(control.Priority))
	sh.Track = cmp.Or(sh.Track, control.TrackingEnabled)
	return err
}

// newMessage is a message on its way into Redis.
type newMessage struct {
	id          string
	partition   int
	envelope    envelope
	composed    *message.Composed      // as it was checked
	content     []byte                 // the message itself; unused with shared content
	shared      *sharedContent         // what it is rendered from at each attempt; nil if content is the message
	personal    render.Personalization // what it adds to the shared content
	lane        api.Lane
	gateway     string
	attempts    int    // at most
	made        int    // attempts made before it was submitted
	reservation string // reservation of the limit that it waits for; empty if it waits for none
	window      int    // its account's window, see Options.Window
	size        int    // bytes as it is sent
	quotas      []quota
	counted     bool   // in the quotas of a day
	due         int64  // Unix milliseconds; in the past: now
	key         string // name of its idempotency key in Redis, or empty
	merge       string // name of the key of the mail merge that it is part of, or empty
	fingerprint string // in all its forms (sealer.prints); empty without a key

	accepting // what accept needs
	result    Result
}

// refuse notes why the message is not accepted.
func (m *newMessage) refuse(err error) { m.result = Result{Err: err} }

// entry checks one of many entries and returns its message.
func (b *Batch) entry(ctx context.Context, e Entry) (*newMessage, error) {
	m, err := b.message(ctx, e, false)
	if err == nil && m.composed.Size() > 2*b.light { // what a full rendering finds may depend on the size
		m, err = b.message(ctx, e, true)
	}
	if err == nil {
		if m.size = max(m.envelope.Size, m.composed.Size()+b.files); m.size > b.in.opts.MaxSize {
			err = b.in.tooLarge(m.size)
		}
	}
	if err == nil {
		err = b.carried(m)
	}
	return m, joinFields(append(b.checkEntry(e, true), checkKey(b.shared, e)...), err)
}

// message composes an entry's message: in full, or without files and inlined CSS, which finds all errors but
// the batch's.
func (b *Batch) message(ctx context.Context, e Entry, full bool) (*newMessage, error) {
	in, c := b.in, b.raw
	m := &newMessage{lane: b.lane(), gateway: b.shared.Gateway, attempts: cmp.Or(b.shared.Attempts,
		in.opts.Attempts()), window: in.windowOf(b.account), quotas: b.quotas}
	m.partition = mathrand.IntN(in.DB.Partitions())
	if e.Key != "" {
		m.partition, m.key, m.merge = keyOf(b.account.ID, e, in.DB.Partitions())
		m.fingerprint = in.codec.prints(e.Fingerprint(b))
	}
	m.id = newID(in.clock.Now(), m.partition)
	if c == nil {
		var err error
		if c, err = b.render(ctx, m, e, full); err != nil {
			return nil, err
		}
	}
	if in.confined(b.shared.Bound) {
		if err := in.checkSenders(b.account, c.Envelope.From, c.Raw); err != nil {
			return nil, err
		}
	}
	m.composed = c
	if !b.stored {
		m.content = c.Raw
	}
	if e.SendAt != nil {
		m.due = redisdb.Millis(*e.SendAt)
	}
	m.envelope = envelope{
		Account: b.account.ID, Source: b.shared.Source, MessageID: c.MessageID, From: c.Envelope.From,
		To: c.Envelope.To, Subject: c.Subject, Key: e.Key, Tags: b.shared.Tags, Metadata: e.Metadata,
		Priority:  b.priority(),
		DeliverBy: b.shared.DeliverBy, DSN: b.shared.DSN, UTF8: c.SMTPUTF8, EightBit: c.EightBit,
		RequireTLS: b.shared.RequireTLS, Template: b.template, additions: b.added, Path: b.shared.Path,
		Raw: b.raw != nil, preview: b.shared.Preview, Bound: b.shared.Bound,
		Trace: b.shared.Trace,
	}
	if in.confined(b.shared.Bound) {
		m.envelope.Named = named(c.Envelope.From, c.Raw)
	}
	if full {
		m.envelope.Size = c.Size()
	}
	from := strings.ToLower(c.Envelope.From)
	m.envelope.Returns = in.opts.BounceDomain != "" && from != "" &&
		(from == strings.ToLower(c.From.Address) || from == strings.ToLower(b.account.Email))
	return m, nil
}

// keyOf returns the partition and the name of an entry's idempotency key in Redis. It also returns the name
// of the mail merge's key that it has a place under, or "".
func keyOf(account string, e Entry, partitions int) (partition int, key, merge string) {
	key = keyHash(account, e.Key)
	partition = redisdb.PartitionFor(key, partitions)
	if e.KeySuffix != "" {
		key, merge = keyHash(account, e.Key+"\x00"+e.KeySuffix), key
	}
	return partition, key, merge
}

// render renders the message of an entry from the batch's content.
func (b *Batch) render(ctx context.Context, m *newMessage, e Entry, full bool) (*message.Composed, error) {
	r := b.content.renderer
	m.personal = render.Personalization{
		To: e.To, Cc: e.Cc, InReplyTo: e.InReplyTo, References: e.References, Params: e.Params,
		Date: redisdb.Millis(b.began),
	}
	if b.stored {
		m.shared = b.content
	}
	identity := render.Identity{
		MessageID: e.MessageID, Envelope: e.Envelope, Bcc: e.Bcc,
	}
	if identity.MessageID == "" {
		identity.MessageID = b.ownMessageID(m.id, e)
	}
	c, _, err := r.Render(ctx, m.personal, identity, full)
	return c, err
}

// ownMessageID returns the Message-ID of a message that was submitted without one: a proof and the domain of
// the author, so that reports about the message can be matched and believed. In a dry run it proves nothing.
// It is "" if an address is invalid; then composing the message fails.
func (b *Batch) ownMessageID(id string, e Entry) string {
	from, err := message.NormalizeAddress(b.content.renderer.Content().From.Address)
	if err != nil {
		return ""
	}
	if b.shared.Preview {
		return "<preview-" + strings.ToLower(id) + "@" + domainOf(from) + ">"
	}
	var to []string
	if e.Envelope != nil {
		to = e.Envelope.To
	}
	if len(to) == 0 {
		for _, list := range [][]message.Address{e.To, e.Cc, e.Bcc} {
			for _, a := range list {
				to = append(to, a.Address)
			}
		}
	}
	if to = message.DedupeAddresses(to); len(to) == 1 {
		if to[0], err = message.NormalizeAddress(to[0]); err != nil {
			return ""
		}
	}
	return "<" + b.in.proof(id, b.account.ID, to) + "@" + domainOf(from) + ">"
}

// final returns a message as it would be sent: with additions, signed. Its links are preview links.
func (b *Batch) final(ctx context.Context, m *newMessage) ([]byte, error) {
	in := b.in
	if b.raw != nil && b.added.any() {
		return in.withAdditions(ctx, m.id, m.envelope, in.owner(b.account, b.shared.Bound), b.began, m.composed.Raw)
	}
	c := m.composed
	if b.stored {
		identity, err := in.sharedIdentity(m.id, m.envelope, b.content.renderer.Content())
		if err != nil {
			return nil, err
		}
		if c, _, err = b.content.renderer.Render(ctx, m.personal, identity, true); err != nil {
			return nil, err
		}
	}
	return in.Signer.Sign(ctx, in.owner(b.account, b.shared.Bound), domainOf(c.From.Address), b.began, c.Raw)
}

// weigh renders the first valid message in full, once for a batch. That finds the errors in what all messages
// share: a file, a header, the size, and anything that no gateway can carry. If that message is too large or
// can't be rendered, it may be the only one: then the next messages are tried.
func (b *Batch) weigh(ctx context.Context, entries []Entry) error {
	b.weighing.Lock()
	defer b.weighing.Unlock()
	if b.weighed {
		return nil
	}
	var failed []error // from full renderings
	for _, e := range entries {
		light, err := b.message(ctx, e, false)
		if ofEntry(err) {
			continue
		}
		m, err := b.message(ctx, e, true)
		if err == nil && m.envelope.Size > b.in.opts.MaxSize {
			err = b.in.tooLarge(m.envelope.Size)
		}
		if err == nil {
			err = b.carried(m)
		}
		if err == nil {
			b.weighed, b.light = true, light.composed.Size()
			b.files = m.envelope.Size - b.light
			return nil
		}
		failed = append(failed, err)
		if len(failed) == weighings || !fault.Is(err, fault.TooLarge) && !ofEntry(err) {
			return failed[0]
		}
	}
	return cmp.Or(append(failed, nil)...)
}

// ofEntry reports whether an error is about a field of the entry. Any other error concerns the whole batch.
func ofEntry(err error) bool {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return false
	}
	if f.Kind == fault.Unprocessable {
		return true
	}
	for _, field := range f.Fields {
		if key := field.Key; key != "messageId" && key != "params" && key != "subject" &&
			!strings.HasPrefix(key, "to") {
			return false
		}
	}
	return f.Kind == fault.Invalid
}
