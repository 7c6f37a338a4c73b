package provider

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"
	"time"
)

// postalSigner is the public key of a Postal installation, which is also in its DKIM record. It signs bodies
// (RSA, PKCS #1 v1.5): X-Postal-Signature-256 over SHA-256, X-Postal-Signature over SHA-1 for old versions.
// https://docs.postalserver.io/developer/webhooks
type postalSigner struct{ public *rsa.PublicKey }

func postalKey(secret string) (key, error) {
	if _, record, ok := strings.Cut(secret, "p="); ok {
		secret, _, _ = strings.Cut(record, ";")
	}
	der, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(secret)) // an empty secret gives no key
	parsed, _ := x509.ParsePKIXPublicKey(der)
	public, ok := parsed.(*rsa.PublicKey)
	if !ok || public.N.BitLen() < 1024 {
		return nil, errors.New("must be the DKIM record of a Postal installation, or the base64 after its p=")
	}
	return postalSigner{public}, nil
}

func (s postalSigner) verify(_ context.Context, _ *Verifier, r *incoming, _ time.Time) error {
	hash, text := crypto.SHA256, r.Header.Get("X-Postal-Signature-256")
	if text == "" {
		hash, text = crypto.SHA1, r.Header.Get("X-Postal-Signature")
	}
	signature, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(signature) == 0 {
		return missing("X-Postal-Signature")
	}
	sum := hash.New()
	sum.Write(r.Body)
	if rsa.VerifyPKCS1v15(s.public, hash, sum.Sum(nil), signature) != nil {
		return mismatch()
	}
	return nil
}

// postalFact reads {"event", "payload", "uuid"}. A failed delivery without a reply is Postal's own decision.
// A bounce that came back by mail has no reason.
func postalFact(o object) (fact, error) {
	word, p := o.text("event"), o.object("payload")
	m, message := Postal.means(word), p.object("message")
	if _, ok := p["bounce"].(object); ok { // said to be MessageBounced or, in some versions, MessageDelayed
		m, message = Postal.means("MessageBounced"), p.object("original_message")
	}
	e := Event{
		EventID:           o.text("uuid"),
		ProviderMessageID: message.text("id"),
		MessageID:         message.text("message_id"),
		Recipient:         message.text("to"),
		Time:              firstTime(p["timestamp"], o["timestamp"]),
		Diagnostic:        p.firstText("output", "details"),
		URL:               p.text("url"),
		UserAgent:         p.text("user_agent"),
		IP:                p.text("ip_address"),
		Tags:              message.texts("tag"),
	}
	e.fillCodes()
	switch {
	case message.text("direction") == "incoming":
		m = ignored("inbound")
	case word == "MessageDeliveryFailed" && strings.Contains(p.text("details"), "delivery attempts"):
		m = Postal.means("attempts")
	case word == "MessageDeliveryFailed" && e.SMTPCode == 0:
		e.Diagnostic, m = p.text("details"), dropped(ReasonOther)
	case word == "MessageDeliveryFailed" && e.SMTPCode < 500:
		m.bounce = Soft
	}
	return m.fact(word, e)
}
