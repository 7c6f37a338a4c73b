package provider

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"maps"
	"slices"
	"time"
)

// mandrillSigner is a webhook's key. It makes an HMAC-SHA1 over the webhook's address, as it was entered at
// Mandrill, and the form's names and values, sorted by name.
// https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/
type mandrillSigner []byte

func mandrillKey(secret string) (key, error) {
	_, err := mailgunKey(secret) // the same bounds
	return mandrillSigner(secret), err
}

func (s mandrillSigner) verify(_ context.Context, _ *Verifier, r *incoming, _ time.Time) error {
	given, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Mandrill-Signature"))
	if !r.parsed {
		r.parsed = true
		r.event, _, r.err = parseForm(r.Request)
	}
	if err != nil || len(given) == 0 || r.err != nil || r.event.text("mandrill_events") == "" {
		return missing("X-Mandrill-Signature")
	}
	for _, address := range r.Addresses {
		mac := hmac.New(sha1.New, s)
		mac.Write([]byte(address))
		for _, name := range slices.Sorted(maps.Keys(r.event)) {
			mac.Write([]byte(name + r.event.text(name)))
		}
		if hmac.Equal(given, mac.Sum(nil)) {
			return nil
		}
	}
	return mismatch()
}

// readMandrill reads a form whose field mandrill_events has a list of events in JSON.
func readMandrill(r *reading, q Request) error {
	form, _, err := parseForm(q)
	if err != nil || form.text("mandrill_events") == "" {
		return wrongBody("The body is not a form with mandrill_events")
	}
	return r.each([]byte(form.text("mandrill_events")), mandrillFact)
}

// mandrillFact reads an event. It has no id. Changes of Mandrill's lists have a type instead of an event.
func mandrillFact(o object) (fact, error) {
	word, msg := o.firstText("event", "type"), o.object("msg")
	return Mandrill.means(word).fact(word, Event{
		Key:               fingerprint(o["event"], msg["_id"], msg["email"], o["ts"], o["url"]),
		ProviderMessageID: msg.text("_id"),
		Recipient:         msg.text("email"),
		Time:              when(o["ts"]),
		Diagnostic:        msg.firstText("diag", "bounce_description"),
		URL:               o.text("url"),
		UserAgent:         o.text("user_agent"),
		IP:                o.text("ip"),
		Bot:               o.object("user_agent_parsed").text("type") == "robot",
		Tags:              msg.texts("tags"),
		Metadata:          metadata(msg.object("metadata")),
	})
}
