package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"

	"github.com/postroom/postroom/fault"
)

// mailgunSigner is the webhook signing key: HMAC-SHA256 over a timestamp and a random token, which come in the body. The body itself isn't
// signed, so whoever saw one request could write another with its signature; therefore a token belongs to the event it first came with.
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
	stamp, token := signature.text("timestamp"), signature.text("token")
	given, err := hex.DecodeString(signature.text("signature"))
	at, ok := signedSeconds(stamp)
	if err != nil || !ok || token == "" || len(token) > 128 || len(given) == 0 {
		return missing("signature")
	}
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte(stamp + token))
	if !hmac.Equal(given, mac.Sum(nil)) {
		return mismatch()
	}
	if err := v.fresh(at, now); err != nil {
		return err
	}
	// "12"+"3x" and "123"+"x" are signed alike, so time and token are bound together. What they are bound to is the event, not its bytes: a
	// retry may be written in another order.
	mine := fingerprint(r.event)
	bound, err := v.tokens.Bind(ctx, stamp+token, mine, at.Add(v.window+ahead))
	if err != nil {
		return fault.Wrap(err, fault.Unavailable, "", "The token of the request could not be looked up")
	}
	if bound != mine {
		return fault.New(fault.Unauthorized, codeReused, "The token of the request came before, with another event")
	}
	return nil
}

// mailgunParts finds the event and its signature: two objects in JSON, or all in one form as Mailgun posted until 2018, and still does for
// domains that never changed.
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
	told := o.text("event")
	e := mailgunEvent(o)
	status := o.object("delivery-status")
	switch told {
	case "accepted":
		e.Kind = Accepted
	case "delivered":
		e.Kind = Delivered
	case "failed":
		e.mailgunFailure(o.text("severity"), o.text("reason"), code(status["code"]))
	case "rejected":
		e.Kind, e.Reason, e.Diagnostic = Dropped, ReasonOther, o.object("reject").firstText("reason", "description")
	case "opened":
		e.Kind = Opened
	case "clicked":
		e.Kind, e.URL = Clicked, o.text("url")
	case "unsubscribed":
		e.Kind, e.Reason = Unsubscribed, ReasonUnsubscribed
	case "complained":
		e.Kind, e.Reason = Complained, ReasonSpam
	case "stored":
		return ignore("stored", told)
	case "list_member_uploaded", "list_member_upload_error", "list_uploaded":
		return ignore("list", told)
	default:
		return unknown(told)
	}
	if e.Recipient != "" {
		return events(told, e)
	}
	return mailgunTo(told, e, o.object("message").object("headers").text("to"))
}

// mailgunTo is for events, rejected ones above all, that name their recipients only by the header To.
func mailgunTo(told string, e Event, to string) (fact, error) {
	list := addresses(to)
	if e.Kind != Dropped && e.Kind != Accepted {
		e.of(list)
		return events(told, e)
	}
	return forAll(told, e, list)
}

// mailgunEvent fills in what all events have. An id is unique within a day only, so the key has the time in it.
func mailgunEvent(o object) Event {
	client, status, headers := o.object("client-info"), o.object("delivery-status"), o.object("message").object("headers")
	e := Event{
		EventID:           o.text("id"),
		ProviderMessageID: headers.text("message-id"),
		MessageID:         headers.text("message-id"),
		Recipient:         o.text("recipient"),
		Time:              when(o["timestamp"]),
		Diagnostic:        status.firstText("message", "description"),
		SMTPCode:          code(status["code"]),
		Enhanced:          status.text("enhanced-code"),
		UserAgent:         client.text("user-agent"),
		IP:                o.text("ip"),
		Machine:           client.text("bot") != "",
		Tags:              o.texts("tags"),
		Metadata:          metadata(o.object("user-variables")),
	}
	if e.EventID != "" && !e.Time.IsZero() {
		e.Key = e.EventID + "@" + strconv.FormatInt(e.Time.UnixMilli(), 10)
	}
	return e
}

// mailgunFailure tells the failures apart that Mailgun all calls failed: those that it tries again, those of its own suppression list,
// those that it gave up after having tried for hours, and those that the recipient's server refused.
func (e *Event) mailgunFailure(severity, reason string, code int) {
	if severity == "temporary" {
		e.Kind = Deferred
		return
	}
	e.Kind, e.Bounce, e.Reason = Bounced, Hard, ReasonBounced
	switch reason {
	case "suppress-bounce":
		e.Kind = Dropped
	case "suppress-complaint":
		e.Kind, e.Reason = Dropped, ReasonSpam
	case "suppress-unsubscribe":
		e.Kind, e.Reason = Dropped, ReasonUnsubscribed
	case "old":
		e.Bounce, e.Reason = Soft, ReasonTimedOut
	case "espblock":
		e.Bounce, e.Reason = Soft, ReasonBlocked
	}
	if drop := mailgunDrop(code); drop != "" {
		e.Kind, e.Reason = Dropped, drop
	}
	if code >= 400 && code < 500 {
		e.Bounce = Soft
	}
	if e.Kind == Dropped {
		e.Bounce = ""
	}
}

// mailgunDrop reads Mailgun's own codes above 600: its suppression list.
func mailgunDrop(code int) Reason {
	switch code {
	case 605:
		return ReasonBounced
	case 606:
		return ReasonUnsubscribed
	case 607:
		return ReasonSpam
	}
	return ""
}
