package provider

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
	"time"
)

// sendgridSigner is the verification key of the signed event webhook: ECDSA on P-256 over SHA-256 of the
// timestamp and the body.
type sendgridSigner struct{ public *ecdsa.PublicKey }

func sendgridKey(secret string) (key, error) {
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil {
		return nil, errors.New("must be the base64 of a verification key")
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("must be the base64 of a verification key")
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return nil, errors.New("must be an ECDSA key on the curve P-256")
	}
	return sendgridSigner{public}, nil
}

func (s sendgridSigner) verify(_ context.Context, v *Verifier, r *incoming, now time.Time) error {
	timestamp := r.Header.Get("X-Twilio-Email-Event-Webhook-Timestamp")
	signature, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Twilio-Email-Event-Webhook-Signature"))
	at, ok := signedSeconds(timestamp)
	if err != nil || !ok || len(signature) == 0 {
		return missing("X-Twilio-Email-Event-Webhook-Signature and -Timestamp")
	}
	hash := sha256.New()
	hash.Write([]byte(timestamp))
	hash.Write(r.Body)
	if !ecdsa.VerifyASN1(s.public, hash.Sum(nil), signature) {
		return mismatch()
	}
	return v.fresh(at, now)
}

func sendgridFact(o object) (fact, error) {
	word := o.text("event")
	m, e := SendGrid.means(word), sendgridEvent(o)
	switch m.kind {
	case Delivered:
		e.Diagnostic = o.text("response")
	case Deferred:
		e.Diagnostic = o.firstText("response", "reason")
	case Bounced:
		e.Diagnostic = o.text("reason")
		if o.text("type") == "blocked" {
			m = SendGrid.means("type:blocked")
		}
		if strings.HasPrefix(o.text("status"), "4") {
			m.bounce = Soft // SendGrid gave up after 72 hours
		}
	case Dropped:
		e.Diagnostic = o.text("reason")
		first := strings.Fields(strings.ToLower(e.Diagnostic) + " - -") // "Bounced Address"
		m = SendGrid.means("dropped:"+first[0], "dropped:"+first[0]+" "+first[1], word)
	case Opened:
		e.Bot = o.is("sg_machine_open")
	}
	if m.kind != Opened && m.kind != Clicked && m.kind != Unsubscribed {
		e.IP = "" // SendGrid's own server
	}
	return m.fact(word, e)
}

// sendgridEvent reads the fields of all events. The key is not sg_event_id, which changes with each retry
// (sendgrid-nodejs issue 1435).
func sendgridEvent(o object) Event {
	id, header := o.text("sg_message_id"), o.text("smtp-id")
	own, _, _ := strings.Cut(id, ".")
	local, host, _ := strings.Cut(strings.Trim(header, "<>"), "@")
	if (own == "" || strings.HasPrefix(own, "filter") || strings.HasPrefix(own, "recv")) &&
		strings.HasSuffix(host, ".sendgrid.net") {
		own = local // the sg_message_id of a dropped message begins with the name of a server
	}
	e := Event{
		EventID: o.text("sg_event_id"),
		Key: fingerprint(o["event"], id, header, o["email"], o["timestamp"], o["url"],
			o["url_offset"], o["attempt"], o["asm_group_id"]),
		ProviderMessageID: own,
		ProviderAlias:     id,
		MessageID:         header,
		Recipient:         o.text("email"),
		Time:              when(o["timestamp"]),
		Enhanced:          o.text("status"),
		URL:               o.text("url"),
		UserAgent:         o.text("useragent"),
		IP:                o.text("ip"),
		Tags:              o.texts("category"),
	}
	e.attach(metadata(o.without(sendgridOwn)))
	return e
}

// sendgridOwn are SendGrid's fields. The sender's own arguments are mixed with them.
var sendgridOwn = strings.Fields("email timestamp event smtp-id sg_event_id sg_message_id category reason status response attempt useragent ip url url_offset type tls cert_err asm_group_id send_at newsletter pool sg_machine_open sg_content_type sg_user_id bounce_classification marketing_campaign_id marketing_campaign_name marketing_campaign_split_id marketing_campaign_version sg_template_id sg_template_name content_type")
