package provider

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// A door for each provider: whatever comes in, what is read keeps its bounds, is the same each time, and
// errors have the kinds promised.
func fuzzRead(f *testing.F, name Name) {
	files, _ := filepath.Glob(filepath.Join("testdata", "fixtures", string(name), "*.json"))
	for _, path := range files {
		_, r := loadFixture(f, name, filepath.Base(path))
		f.Add(r.Body, r.Header.Get("Content-Type"))
	}
	for _, row := range meaningTable[name] {
		body := row[0]
		if name == SES {
			body = sns(f, body)
		}
		f.Add([]byte(body), "application/json")
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		r := Request{Header: http.Header{"Content-Type": {contentType}, "Webhook-Id": {"msg_1"}}, Body: body}
		b, err := Read(name, r)
		if err != nil {
			if !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.TooLarge) {
				t.Fatalf("kind %s: %v", fault.KindOf(err), err)
			}
			return
		}
		checkBounds(t, b)
		again, _ := Read(name, r)
		first, _ := json.Marshal(b.Events)
		second, _ := json.Marshal(again.Events)
		if !bytes.Equal(first, second) {
			t.Fatalf("read %s, then %s", first, second)
		}
		if b.Confirm != nil {
			if _, ok := snsAddress(b.Confirm.URL); !ok || name != SES {
				t.Fatalf("confirmation at %q", b.Confirm.URL)
			}
		}
	})
}

func FuzzReadSES(f *testing.F)       { fuzzRead(f, SES) }
func FuzzReadSendGrid(f *testing.F)  { fuzzRead(f, SendGrid) }
func FuzzReadMailgun(f *testing.F)   { fuzzRead(f, Mailgun) }
func FuzzReadPostmark(f *testing.F)  { fuzzRead(f, Postmark) }
func FuzzReadMailjet(f *testing.F)   { fuzzRead(f, Mailjet) }
func FuzzReadSparkPost(f *testing.F) { fuzzRead(f, SparkPost) }
func FuzzReadBrevo(f *testing.F)     { fuzzRead(f, Brevo) }
func FuzzReadResend(f *testing.F)    { fuzzRead(f, Resend) }
func FuzzReadPostal(f *testing.F)    { fuzzRead(f, Postal) }
func FuzzReadMandrill(f *testing.F)  { fuzzRead(f, Mandrill) }
func FuzzReadGeneric(f *testing.F)   { fuzzRead(f, Generic) }

// FuzzVerify gives the doors whatever a stranger can send. Nothing but the genuine requests, which are among
// the seeds, may pass.
func FuzzVerify(f *testing.F) {
	genuine, key, signed := sendgridGenuine(f)
	_, standard, _ := standardGenuine(f, "signatures/standard_webhooks_v1.json")
	_, mailgun := loadFixture(f, Mailgun, "delivered_event.json")
	var x snsVector
	loadJSON(f, "signatures/sns_genuine.json", &x)
	seeds := []Request{genuine, standard, mailgun, encode(f, x.Messages[0]), encode(f, x.Messages[1])}
	const shared = "a-secret-of-good-length"
	now := signed
	options := map[Name]Options{
		SES: {Secrets: []string{x.Messages[0]["TopicArn"], x.Messages[1]["TopicArn"]}, Transport: &recorded{
			pages: x.pages()}},
		SendGrid: {Secrets: []string{key}},
		Mailgun:  {Secrets: []string{"TEST_WEBHOOK_SIGNING_KEY"}},
		Resend:   {Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
		Generic:  {Secrets: []string{shared, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
	}
	verifiers := map[Name]*Verifier{}
	for name, o := range options {
		o.Window = 20 * 365 * 24 * time.Hour // so that the time doesn't help
		verifiers[name] = newVerifier(f, name, o)
	}
	now = now.AddDate(3, 0, 0).Truncate(time.Second)
	passes := map[string]bool{}
	for _, r := range seeds {
		h := r.Header
		id, stamp, signature := standardHeader(h, "id"), standardHeader(h, "timestamp"), standardHeader(h,
			"signature")
		if stamp == "" {
			stamp, signature = h.Get("X-Twilio-Email-Event-Webhook-Timestamp"), h.Get(
				"X-Twilio-Email-Event-Webhook-Signature")
		}
		f.Add(r.Body, id, stamp, signature, "", "")
		passes[string(r.Body)] = true
	}
	f.Add([]byte("{}"), "", "", "", "Basic eDp5", shared[1:])
	f.Fuzz(func(t *testing.T, body []byte, id, stamp, signature, authorization, token string) {
		h := http.Header{}
		for name, value := range map[string]string{"webhook-id": id, "webhook-timestamp": stamp,
			"webhook-signature":                      signature,
			"X-Twilio-Email-Event-Webhook-Timestamp": stamp, "X-Twilio-Email-Event-Webhook-Signature": signature,
			"Authorization": authorization} {
			h.Set(name, value)
		}
		r := Request{Header: h, Query: url.Values{"token": {token}}, Body: body}
		for name, v := range verifiers {
			err := v.Verify(t.Context(), r, now)
			switch {
			case err == nil && name == SES: // white space and fields that aren't signed may differ
			case err == nil && name == Generic && (token == shared || authorization != ""):
			case err == nil && name == Mailgun:
				// the signature doesn't cover the body, so one of the seeds' may stand in it
			case err == nil && !passes[string(body)]:
				t.Errorf("%s accepted %q", name, body)
			case err != nil && !fault.Is(err, fault.Unauthorized) && !fault.Is(err, fault.TooLarge) &&
				!fault.Is(err, fault.Unavailable):
				t.Errorf("%s: kind %s: %v", name, fault.KindOf(err), err)
			}
		}
	})
}
