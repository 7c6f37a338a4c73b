package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// mailgunSigner is the webhook signing key: HMAC-SHA256 over a timestamp and a random token in the body. The
// body is not signed, so anyone who saw a request could send another with its signature. Therefore a token is
// bound to the event that it first came with.
type mailgunSigner []byte

func mailgunKey(secret string) (key, error) {
	if len(secret) < minShared || len(secret) > maxShared {
		return nil, errors.New("must have 16 to 256 characters")
	}
	return mailgunSigner(secret), nil
}

func (s mailgunSigner) verify(ctx context.Context, v *Verifier, r *incoming, now time.Time) error {
	if !r.parsed {
		r.parsed = true
		r.event, r.signature, r.err = mailgunParts(r.Request)
	}
	if r.err != nil {
		return missing("signature")
	}
	signature := r.signature
	timestamp, token := signature.text("timestamp"), signature.text("token")
	given, err := hex.DecodeString(signature.text("signature"))
	at, ok := signedSeconds(timestamp)
	if err != nil || !ok || token == "" || len(token) > 128 || len(given) == 0 {
		return missing("signature")
	}
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(timestamp + token))
	if !hmac.Equal(given, mac.Sum(nil)) {
		return mismatch()
	}
	if err := v.fresh(at, now); err != nil {
		return err
	}
	// "12"+"3x" and "123"+"x" have the same signature, so time and token are bound together. They are bound to
	// the event, not to its bytes: a retry may have another order of fields.
	mine := fingerprint(r.event)
	bound, err := v.bind(ctx, timestamp+token, mine, at.Add(v.window+ahead))
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "", "The token of the request couldn't be looked up")
	}
	if bound != mine {
		return fault.New(fault.Unauthorized, codeReused, "The token of the request was used before, with "+
			"another event")
	}
	return nil
}

// mailgunParts returns the event and its signature: two objects in JSON, or one form, which Mailgun posted
// until 2018 and still posts for unchanged domains.
func mailgunParts(r Request) (event, signature object, err error) {
	form, isForm, err := parseForm(r)
	if isForm {
		return form, form, err
	}
	o, err := parseObject(r.Body)
	if err != nil {
		return nil, nil, err
	}
	event, ok := o["event-data"].(object)
	if !ok {
		return nil, nil, errors.New("has no event-data")
	}
	return event, o.object("signature"), nil
}

func readMailgun(r *reading, q Request) error {
	event, _, err := mailgunParts(q)
	if err != nil {
		return wrongBody("The body is not one of a Mailgun webhook")
	}
	if _, isForm, _ := parseForm(q); isForm {
		return r.one(event, mailgunFormFact)
	}
	return r.one(event, mailgunFact)
}

func mailgunFact(o object) (fact, error) {
	word := o.text("event")
	m, e := Mailgun.means(word), mailgunEvent(o)
	switch word {
	case "failed":
		m = mailgunFailure(o.text("severity"), o.text("reason"), e.SMTPCode)
	case "rejected":
		e.Diagnostic = o.object("reject").firstText("reason", "description")
	}
	if e.Recipient != "" {
		return m.fact(word, e)
	}
	// Some events, most of all rejected ones, name their recipients only in the header To.
	list := addresses(o.object("message").object("headers").text("to"))
	if m.kind == Dropped || m.kind == Accepted {
		return m.fact(word, e, list...)
	}
	e.of(list)
	return m.fact(word, e)
}

// mailgunEvent reads the fields of all events. An id is unique within a day only, so the key includes the
// time.
func mailgunEvent(o object) Event {
	client, status, headers := o.object("client-info"), o.object("delivery-status"), o.object("message").object(
		"headers")
	e := Event{
		EventID:           o.text("id"),
		ProviderMessageID: headers.text("message-id"),
		MessageID:         headers.text("message-id"),
		Recipient:         o.text("recipient"),
		Time:              when(o["timestamp"]),
		Diagnostic:        status.firstText("message", "description"),
		SMTPCode:          code(status["code"]),
		Enhanced:          status.text("enhanced-code"),
		URL:               o.text("url"),
		UserAgent:         client.text("user-agent"),
		IP:                o.text("ip"),
		Bot:               client.text("bot") != "",
		Tags:              o.texts("tags"),
		Metadata:          metadata(o.object("user-variables")),
	}
	if e.EventID != "" && !e.Time.IsZero() {
		e.Key = e.EventID + "@" + strconv.FormatInt(e.Time.UnixMilli(), 10)
	}
	return e
}

// mailgunCodes are the codes of Mailgun's suppression list.
var mailgunCodes = map[int]Reason{605: ReasonBounced, 606: ReasonUnsubscribed, 607: ReasonSpam}

func mailgunFailure(severity, reason string, code int) outcome {
	if severity == "temporary" {
		return Mailgun.means("temporary")
	}
	if drop, ok := mailgunCodes[code]; ok {
		return dropped(drop)
	}
	m := Mailgun.means("reason:"+reason, "failed")
	if m.kind == Bounced && code >= 400 && code < 500 {
		m.bounce = Soft
	}
	return m
}
