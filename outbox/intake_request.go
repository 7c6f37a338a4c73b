package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/internal/telemetry"
)

// Submit accepts a request of the HTTP API: a single message, or a mail merge. A nil error means that the
// message will be delivered or reported as failed; see the package comment. A mail merge's error is about the
// whole request; an entry's error is in its result.
//
// Errors: Invalid lists every invalid field. NotFound is for an unknown account, gateway or template.
// Unprocessable is for a key used with another fingerprint. TooLarge; Unavailable while Redis is unreachable
// or full, with the time to come back.
func (in *Intake) Submit(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	return in.submit(ctx, req, SourceAPI)
}

// SubmitSMTP is Submit for a message that came in over SMTP.
func (in *Intake) SubmitSMTP(ctx context.Context, req api.SubmitRequest) (api.SubmitAnswer, error) {
	return in.submit(ctx, req, SourceSMTP)
}

func (in *Intake) submit(ctx context.Context, req api.SubmitRequest, source string) (answer api.SubmitAnswer,
	err error) {
	ctx, span := in.opts.Traces.Root(ctx, "submit", telemetry.Internal)
	defer func() {
		tracedSubmit(span, req, answer, err)
		span.End()
	}()
	asked := req // a key is compared with it
	wrong := takeHeaders(&req)
	req.DryRun = req.DryRun || len(wrong) > 0 // to find the other errors
	if len(req.MailMerge) > 0 {
		answer, err = in.submitMerge(ctx, req, asked, source)
	} else {
		answer, err = in.submitOne(ctx, req, asked, source)
	}
	if err = joinFields(wrong, err); err != nil {
		answer = api.SubmitAnswer{}
	}
	if fault.Is(err, fault.Unavailable) {
		in.metrics.accepted.WithLabelValues("refused").Inc()
	}
	return answer, err
}

// submitOne checks and composes a single message, makes it durable and queues its first task. A dry run
// returns the message as it would be sent.
func (in *Intake) submitOne(ctx context.Context, req, asked api.SubmitRequest, source string) (
	none api.SubmitAnswer, _ error) {
	sh, e := sharedOf(req, source), entryOf(req)
	e.Fingerprint = func(b *Batch) string { return b.prints(asked, fingerprint) }
	sh.Trace = in.opts.Traces.Carrier(ctx)
	ctx, cancel := context.WithTimeout(ctx, sh.timeout())
	defer cancel()
	b, m, err := in.one(ctx, sh, e)
	if err != nil {
		return none, err
	}
	size := m.envelope.Size
	switch {
	case req.DryRun:
		m.content, err = b.final(ctx, m)
		size = len(m.content)
	case !b.stored && !b.added.any():
		c := m.composed
		m.content, err = in.Signer.Sign(ctx, in.owner(b.account, b.shared.Bound), domainOf(c.From.Address),
			b.began, c.Raw)
		m.envelope.Size = len(m.content)
		size = len(m.content)
	}
	if err != nil {
		return none, err
	}
	if size > in.opts.MaxSize {
		return none, in.tooLarge(size)
	}
	if req.DryRun {
		return api.SubmitAnswer{Response: "Dry run", MessageID: m.envelope.MessageID, Preview: m.content}, nil
	}
	m.size = size
	in.accept(ctx, []*newMessage{m}, sh.timeout())
	r := m.result
	if r.Err != nil {
		return none, r.Err
	}
	answer := api.SubmitAnswer{Response: "Queued for delivery", MessageID: r.MessageID, SendAt: &r.SendAt,
		QueueID: r.ID, Idempotency: r.idempotency(), Skipped: r.Skipped}
	if answer.NoneQueued() {
		answer.Response, answer.SendAt = "Skipped: all recipients of this message are suppressed", nil
	}
	return answer, nil
}

// submitMerge accepts a mail merge. A repetition under the key of the request gets the first answer, and
// continues where the first one was cut off.
func (in *Intake) submitMerge(ctx context.Context, req, asked api.SubmitRequest, source string) (
	api.SubmitAnswer, error) {
	sh := sharedOf(req, source)
	sh.Trace = in.opts.Traces.Carrier(ctx)
	b, wrong, err := in.open(ctx, sh, nil)
	if b == nil {
		return api.SubmitAnswer{}, err
	}
	wrong = slices.Concat(besideMerge(req), wrong, b.checkEntry(entryOf(req), false))
	if err := joinFields(wrong, err); err != nil {
		return api.SubmitAnswer{}, err
	}
	if err := b.deliverable(ctx); err != nil {
		return api.SubmitAnswer{}, err
	}
	entries := b.mergeEntries(req, asked)
	accept, answer := b.Accept, api.SubmitAnswer{}
	if req.DryRun {
		accept = b.Preview
	} else if err := b.weigh(ctx, entries); err != nil { // before the key is claimed
		return api.SubmitAnswer{}, err
	} else if err := b.room(ctx, entries); err != nil {
		return api.SubmitAnswer{}, err
	} else if answer.Idempotency, err = b.claim(ctx, req.IdempotencyKey, asked); err != nil {
		return api.SubmitAnswer{}, err
	}
	results, err := accept(ctx, entries)
	if err != nil {
		return api.SubmitAnswer{}, err
	}
	answer.MailMerge = make([]api.MailMergeResult, len(results))
	for i, r := range results {
		answer.MailMerge[i] = in.mergeResult(r, b.account.ID, i, req.MailMerge[i].To)
	}
	return answer, nil
}

// sharedOf returns what the messages of a request share.
func sharedOf(req api.SubmitRequest, source string) Shared {
	sh := Shared{
		Source: source, Account: req.Account, ReplyTo: addresses(req.ReplyTo),
		Headers: message.HeadersOf(req.Headers), Raw: req.Raw, Template: req.Template, Subject: req.Subject,
		PreviewText: req.PreviewText, HTML: req.HTML, Text: req.Text,
		Plain: req.Template == "" && len(req.MailMerge) == 0, Locale: req.Locale, TZ: req.TZ, ListID: req.ListID,
		Preview:    req.DryRun,
		TrackOpens: req.TrackOpens, TrackClicks: req.TrackClicks, Track: req.TrackingEnabled, BaseURL: req.BaseURL,
		Lane: req.Lane, Priority: req.Priority,
		Gateway: req.Gateway, Attempts: req.DeliveryAttempts, RequireTLS: req.RequireTLS,
		DSN: req.DSN, Tags: req.Tags, DeliverBy: req.DeliverBy, KeyRequired: req.KeyRequired,
		Bound: req.Bound, Token: req.Token, TokenQuota: req.TokenQuota,
		Path: gateways.Path{Proxy: req.Proxy, LocalAddress: req.LocalAddress},
	}
	if req.From != nil {
		from := message.Address(*req.From)
		sh.From = &from
	}
	if r := req.Render; r != nil {
		sh.Plain, sh.Format = r.Off, r.Format
		if r.Missing != "" {
			strict := r.Missing == "error"
			sh.Strict = &strict
		}
	}
	for _, a := range req.Attachments {
		sh.Attachments = append(sh.Attachments, message.Attachment{
			Filename: a.Filename, Content: a.Content, ContentType: a.ContentType, Disposition: a.ContentDisposition,
			CID: a.CID,
		})
	}
	return sh
}

// entryOf is the entry of a request for a single message.
func entryOf(req api.SubmitRequest) Entry {
	e := Entry{
		To: addresses(req.To), Cc: addresses(req.CC), Bcc: addresses(req.BCC), MessageID: req.MessageID,
		InReplyTo: req.InReplyTo, References: req.References, SendAt: req.SendAt, Metadata: req.Metadata,
		Key: req.IdempotencyKey,
	}
	if req.Envelope != nil {
		e.Envelope = &message.Envelope{From: req.Envelope.From, To: req.Envelope.To}
	}
	if req.Render != nil {
		e.Params = req.Render.Params
	}
	return e
}

func addresses(list api.Addresses) []message.Address {
	out := make([]message.Address, len(list))
	for i, a := range list {
		out[i] = message.Address(a)
	}
	return out
}

// besideMerge finds the fields that can't be combined with mailMerge.
func besideMerge(req api.SubmitRequest) (wrong fault.Fields) {
	for _, f := range []struct {
		key   string
		given bool
	}{
		{"to", len(req.To) > 0}, {"cc", len(req.CC) > 0}, {"bcc", len(req.BCC) > 0}, {"raw", len(req.Raw) > 0},
		{"envelope", req.Envelope != nil}, {"messageId", req.MessageID != ""},
		{"render.params", req.Render != nil && len(req.Render.Params) > 0},
	} {
		if f.given {
			wrong.Add(f.key, "can't be combined with mailMerge")
		}
	}
	return wrong
}

// mergeEntries returns a mail merge's entries. An entry without a key gets one made of the request's key and
// its place, with the whole request's fingerprint.
func (b *Batch) mergeEntries(req, asked api.SubmitRequest) []Entry {
	whole := sync.OnceValue(func() string { return b.prints(asked, fingerprint) })
	common := sync.OnceValue(func() string {
		rest := asked
		rest.MailMerge = nil
		return b.prints(rest, fingerprint)
	})
	entries := make([]Entry, len(req.MailMerge))
	for i, m := range req.MailMerge {
		e := Entry{
			To: []message.Address{message.Address(m.To)}, MessageID: m.MessageID, InReplyTo: req.InReplyTo,
			References: req.References, Params: m.Params, SendAt: m.SendAt, Metadata: m.Metadata,
			Key:         m.IdempotencyKey,
			Fingerprint: func(*Batch) string { return entryFingerprints(common(), m, len(req.Metadata) > 0) },
		}
		e.SendAt = cmp.Or(e.SendAt, req.SendAt)
		if len(e.Metadata) == 0 {
			e.Metadata = req.Metadata
		}
		if e.Key == "" && req.IdempotencyKey != "" {
			e.Key, e.KeySuffix = req.IdempotencyKey, strconv.Itoa(i)
			e.Fingerprint = func(*Batch) string { return whole() }
		}
		entries[i] = e
	}
	return entries
}

// claim takes the key of a mail merge, if it has one. If another request has used the key, nothing may be
// queued.
func (b *Batch) claim(ctx context.Context, key string, asked api.SubmitRequest) (*api.IdempotencyStatus,
	error) {
	in := b.in
	if err := in.Admits(ctx); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, baseTimeout)
	defer cancel()
	name := in.keys.ofRequest(b.account.ID, key, in.DB.Partitions())
	answer, err := claimScript.RunReplicated(ctx, in.DB, []string{name},
		claimKeyArgs{Fingerprint: in.codec.prints(b.prints(asked, fingerprint)), KeepKey: in.keepKey()})
	if err != nil {
		return nil, redisError(err, "claim the key of a mail merge")
	}
	if answer.Word == "REUSED" {
		return nil, keyReused()
	}
	return Result{Key: key, Repeated: answer.Word == keyHit}.idempotency(), nil
}

// BlockKey makes sure that no message is accepted from now on under an account's idempotency key. A submit
// under the key that is on its way is refused, like one with another body. If a message was accepted before,
// its id is returned and nothing is changed. A key is blocked for as long as the key of an ended message is
// kept.
func (in *Intake) BlockKey(ctx context.Context, account, key string) (id string, _ error) {
	name := in.keys.ofRequest(account, key, in.DB.Partitions())
	answer, err := blockKeyScript.RunReplicated(ctx, in.DB, []string{name}, blockKeyArgs{KeepKey: in.keepKey()})
	if err != nil {
		return "", redisError(err, "block an idempotency key")
	}
	return acceptedIn(answer.First), nil
}

// keyHit is the status of an idempotency key that was used before.
const keyHit = "HIT"

// idempotency is the status of the key; nil without one.
func (r Result) idempotency() *api.IdempotencyStatus {
	switch {
	case r.Key == "":
		return nil
	case r.Repeated:
		return &api.IdempotencyStatus{Key: r.Key, Status: keyHit, State: r.State}
	}
	return &api.IdempotencyStatus{Key: r.Key, Status: "MISS"}
}

// mergeResult is the result of an entry in the types of the API.
func (in *Intake) mergeResult(r Result, account string, place int, to api.Address) api.MailMergeResult {
	if r.Err == nil {
		m := api.MailMergeResult{Success: true, To: to, QueueID: r.ID, Idempotency: r.idempotency(),
			Preview: r.Preview}
		if m.Skipped = r.Skipped; m.Skipped == nil {
			m.MessageID = r.MessageID
		}
		if m.Skipped == nil && r.ID != "" {
			m.SendAt = &r.SendAt
		}
		return m
	}
	m := api.MailMergeResult{To: to, StatusCode: api.StatusOf(fault.KindOf(r.Err)),
		Error: "An internal server error occurred"}
	f, ok := errors.AsType[*fault.Error](r.Err)
	if !ok || f.Kind == fault.Internal {
		in.log.Error("entry of a mail merge not accepted", "account", account, "entry", place, "error", r.Err)
		return m
	}
	m.Error, m.Code = f.Message, f.Code
	for _, field := range f.Fields {
		key := strings.Replace(field.Key, "to[0]", "to", 1) // an entry of a merge has one recipient
		m.Fields = append(m.Fields, api.ProblemField{Key: key, Message: field.Message})
	}
	return m
}

// fingerprint is a hash of a request without its key: the same key with another fingerprint is refused. The
// account has its own keys, and may be named in several ways.
func fingerprint(req api.SubmitRequest) string {
	req.IdempotencyKey, req.Account = "", ""
	sum := sha256.New()
	return hashJSON(sum, hashTexts(sum, hashFiles(sum, req)))
}

// hashTexts adds a request's longest texts and its params to a hash, and returns the request without them:
// writing them as JSON costs more than hashing them.
func hashTexts(sum hash.Hash, req api.SubmitRequest) api.SubmitRequest {
	var params bytes.Buffer
	if req.Render != nil && json.Compact(&params, req.Render.Params) == nil {
		plain := *req.Render
		plain.Params, req.Render = nil, &plain
	}
	for _, text := range []string{req.HTML, req.Text, params.String()} {
		_ = binary.Write(sum, binary.BigEndian, int64(len(text))) // writing to a hash never fails
		_, _ = io.WriteString(sum, text)
	}
	req.HTML, req.Text = "", ""
	return req
}

// entryFingerprints returns hashes of an entry with its own key, and of each fingerprint of what all entries
// share. The entry's metadata replaces the request's, even if it is empty.
func entryFingerprints(common string, m api.MailMergeEntry, replaces bool) string {
	m.IdempotencyKey = ""
	var all []string
	for print := range strings.FieldsSeq(common) {
		for _, bare := range []bool{!replaces && isEmptyObject(m.Metadata), false} {
			entry := m
			if bare {
				entry.Metadata = nil
			}
			sum := sha256.New()
			sum.Write([]byte(print))
			all = append(all, hashJSON(sum, entry))
		}
	}
	return strings.Join(all, " ")
}

// hashJSON adds v to a hash and returns the hash as text.
func hashJSON(sum hash.Hash, v any) string {
	if err := json.NewEncoder(sum).Encode(v); err != nil {
		return "unreadable" // params or metadata that are no JSON; refused elsewhere
	}
	return short(sum.Sum(nil))
}

// hashFiles adds the files of a request to a hash and returns the request without them: as JSON they would be
// in memory three times.
func hashFiles(sum io.Writer, req api.SubmitRequest) api.SubmitRequest {
	move := func(file *[]byte) {
		_ = binary.Write(sum, binary.BigEndian, int64(len(*file))) // writing to a hash never fails
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

// takeHeaders moves the headers of a request that mean one of its fields, and control headers, to these
// fields. A header that differs from its field is wrong.
func takeHeaders(req *api.SubmitRequest) (wrong fault.Fields) {
	if len(req.Headers) == 0 {
		return nil
	}
	zone, err := schedule.Zone(req.TZ)
	if err != nil {
		zone = time.UTC
	}
	d := message.Draft{Subject: req.Subject, MessageID: req.MessageID, InReplyTo: req.InReplyTo,
		References: req.References, ReplyTo: addresses(req.ReplyTo), Headers: message.HeadersOf(req.Headers)}
	given := d.Headers
	control, wrong := message.TakeHeaders(&d, zone)
	req.Subject, req.MessageID, req.InReplyTo, req.References = d.Subject, d.MessageID, d.InReplyTo, d.References
	req.ReplyTo, req.Headers = nil, api.Headers{}
	for _, a := range d.ReplyTo {
		req.ReplyTo = append(req.ReplyTo, api.Address(a))
	}
	for _, h := range d.Headers {
		req.Headers[h.Name] = append(req.Headers[h.Name], api.HeaderValue(h.Value))
	}
	differs := func(key, purpose string) {
		i := slices.IndexFunc(given, func(h message.Header) bool {
			return strings.HasSuffix(strings.ToLower(h.Name), strings.ToLower("-"+purpose)) &&
				message.IsControl(h.Name)
		})
		wrong.Add(key, "differs from headers.%s", given[i].Name)
	}
	if at := control.SendAt; !at.IsZero() {
		if req.SendAt != nil && !req.SendAt.Equal(at) {
			differs("sendAt", "Send-At")
		}
		req.SendAt = &at
	}
	if track := control.TrackingEnabled; track != nil {
		if req.TrackingEnabled != nil && *req.TrackingEnabled != *track {
			differs("trackingEnabled", "Tracking-Enabled")
		}
		req.TrackingEnabled = track
	}
	takeControl(&req.DeliveryAttempts, control.DeliveryAttempts, "deliveryAttempts", "Delivery-Attempts",
		differs)
	takeControl(&req.Gateway, control.Gateway, "gateway", "Gateway", differs)
	takeControl(&req.IdempotencyKey, control.IdempotencyKey, "idempotencyKey", "Idempotency-Key", differs)
	takeControl(&req.Lane, api.Lane(control.Lane), "lane", "Lane", differs)
	takeControl(&req.Priority, api.Priority(control.Priority), "priority", "Priority", differs)
	return wrong
}

// takeControl sets an empty field to the value of a control header. If both have one, they must be equal.
func takeControl[T comparable](field *T, value T, key, purpose string, differs func(key, purpose string)) {
	if *field != *new(T) && value != *new(T) && *field != value {
		differs(key, purpose)
	}
	*field = cmp.Or(*field, value)
}
