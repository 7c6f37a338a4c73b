package server

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/outbox/suppression"
)

// office is a server whose outbox, suppressions and feedback are real, and a relay that takes everything and
// answers what a test says.
type office struct {
	*world
	box    *outbox.Outbox
	barred *suppression.Store
	relay  *obligingRelay
}

const hookTopic = "arn:aws:sns:eu-west-1:123456789012:mail-events"

// signer signs as each provider does, with keys of its own. Making an RSA key takes a while, so there is one
// for all tests.
type signer struct {
	rsa  *rsa.PrivateKey
	cert []byte
	ec   *ecdsa.PrivateKey
}

var newSigner = sync.OnceValues(func() (*signer, error) {
	s := &signer{}
	var err error
	if s.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		return nil, err
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"}, DNSNames: []string{
			"sns.amazonaws.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, s.rsa.Public(), s.rsa)
	if err != nil {
		return nil, err
	}
	s.cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	s.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return s, err
})

// RoundTrip implements http.RoundTripper: every address has the certificate.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(s.cert)),
		Request: r}, nil
}

const (
	hookSecret    = "a shared secret for the tests"
	hookHost      = "hooks.example"
	hookStandard  = "c2lnbmluZyBzZWNyZXQgb2YgUmVzZW5k"
	hookMailgun   = "the signing key of Mailgun"
	hookCertPlace = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
)

func (s *signer) secrets() (map[provider.Name][]string, error) {
	der, err := x509.MarshalPKIXPublicKey(s.ec.Public())
	if err != nil {
		return nil, err
	}
	postal, err := x509.MarshalPKIXPublicKey(s.rsa.Public())
	if err != nil {
		return nil, err
	}
	all := map[provider.Name][]string{
		provider.Postal: {base64.StdEncoding.EncodeToString(postal)},
		provider.SES:    {hookTopic}, provider.SendGrid: {base64.StdEncoding.EncodeToString(der)},
		provider.Mailgun: {hookMailgun}, provider.Resend: {"whsec_" + hookStandard},
		provider.Mandrill: {hookSecret},
	}
	for _, name := range []provider.Name{provider.Postmark, provider.Mailjet, provider.SparkPost, provider.Brevo,
		provider.Generic} {
		all[name] = []string{hookSecret}
	}
	return all, nil
}

func openOffice(t *testing.T) (*office, *signer) {
	t.Helper()
	s, err := newSigner()
	if err != nil {
		t.Fatal(err)
	}
	w := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.parts.Feedback.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return &office{w, w.parts.Outbox, w.parts.Suppressions, w.parts.relay}, s
}

// send has a message taken by the relay.
func (o *office) send(t *testing.T, messageID string, to ...string) string {
	t.Helper()
	var all api.Addresses
	for _, one := range to {
		all = append(all, api.Address{Address: one})
	}
	answer, err := api.Submit.Do(t.Context(), o.client, api.SubmitRequest{To: all, Subject: "Hello", Text: "Hi",
		MessageID: messageID})
	if err != nil {
		t.Fatal(err)
	}
	o.box.Delivery.Deliver(t.Context(), queue.Task{ID: answer.QueueID + ".1"})
	return answer.QueueID
}

// learnt returns the events of one source on a timeline: type and recipients.
func (o *office) learnt(t *testing.T, id, source string) []string {
	t.Helper()
	story, err := api.ListMessageEvents.Do(t.Context(), o.client, id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range story.Events {
		if e.Details != nil && e.Details.Source == source {
			all = append(all, e.Event+" "+strings.Join(e.Recipients, " "))
		}
	}
	slices.Sort(all)
	return all
}

// barredFor returns the reason why bulk mail of the default account to an address is suppressed, or "".
func (o *office) barredFor(t *testing.T, address string) suppression.Reason {
	t.Helper()
	found, err := o.barred.Check(t.Context(), suppression.Question{Account: accounts.DefaultID, Bulk: true,
		Addresses: []string{address}})
	if err != nil {
		t.Fatal(err)
	}
	if found[0] == nil {
		return ""
	}
	return found[0].Reason
}

func (o *office) eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// post sends a webhook.
func (o *office) post(t *testing.T, name provider.Name, r provider.Request) (int, api.FeedbackReceipt) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.URL()+"/webhooks/provider/"+
		string(name), bytes.NewReader(r.Body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header, q.Host = r.Header.Clone(), hookHost
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var receipt api.FeedbackReceipt
	if err := json.NewDecoder(answer.Body).Decode(&receipt); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, receipt
}

// object is JSON of any provider.
type object = map[string]any

// attach puts the id of the message where the provider echoes it.
func attach(t *testing.T, name provider.Name, payload any, id string) any {
	t.Helper()
	each := func(v any, do func(object)) any {
		if list, ok := v.([]any); ok {
			for _, one := range list {
				do(one.(object))
			}
			return v
		}
		do(v.(object))
		return v
	}
	switch name {
	case provider.SES:
		envelope := payload.(object)
		var inner object
		text, _ := envelope["Message"].(string)
		if err := json.Unmarshal([]byte(text), &inner); err != nil {
			t.Fatal(err)
		}
		if mail, ok := inner["mail"].(object); ok {
			mail["tags"] = object{provider.EchoField: []string{id}}
		}
		raw, err := json.Marshal(inner)
		if err != nil {
			t.Fatal(err)
		}
		envelope["Message"] = string(raw)
		return envelope
	case provider.SendGrid:
		return each(payload, func(o object) { o[provider.EchoField] = id })
	case provider.Mailgun:
		o := payload.(object)
		event, ok := o["event-data"].(object)
		if !ok { // a form
			o["message-headers"] = `[["X-Mailgun-Variables", "{\"` + provider.EchoField + `\": \"` + id + `\"}"]]`
			return o
		}
		event["user-variables"] = object{provider.EchoField: id}
		return o
	case provider.Postmark:
		return each(payload, func(o object) { o["Metadata"] = object{provider.EchoField: id} })
	case provider.Mailjet:
		return each(payload, func(o object) { o["CustomID"] = id })
	case provider.SparkPost:
		return each(payload, func(o object) {
			for _, event := range o["msys"].(object) {
				event.(object)["rcpt_meta"] = object{provider.EchoField: id}
			}
		})
	case provider.Brevo:
		return each(payload, func(o object) {
			o["X-Mailin-custom"] = `{"` + provider.EchoField + `": "` + id +
				`"}`
		})
	case provider.Mandrill:
		return each(payload, func(o object) {
			if msg, ok := o["msg"].(object); ok {
				msg["metadata"] = object{provider.EchoField: id}
			}
		})
	case provider.Postal: // has the Message-ID
		return each(payload, func(o object) {
			for _, part := range []string{"message", "original_message"} {
				if message, ok := o["payload"].(object)[part].(object); ok {
					message["message_id"] = strings.ToLower(id) + "@app.example"
				}
			}
		})
	case provider.Resend:
		return each(payload, func(o object) { o["data"].(object)["tags"] = object{provider.EchoField: id} })
	}
	t.Fatalf("nothing is known of %s", name)
	return nil
}

// sign makes a request of a payload as the provider would make it now.
func (s *signer) sign(t *testing.T, name provider.Name, payload any) provider.Request {
	t.Helper()
	now := time.Now()
	header := http.Header{"Content-Type": {"application/json"}}
	stamp := strconv.FormatInt(now.Unix(), 10)
	write := func(v any) []byte {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	switch name {
	case provider.SES:
		m := payload.(object)
		maps.Copy(m, object{"TopicArn": hookTopic, "Timestamp": now.UTC().Format("2006-01-02T15:04:05.000Z"),
			"SignatureVersion": "2", "SigningCertURL": hookCertPlace})
		var signed strings.Builder
		for _, field := range []string{"Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"} {
			if text, ok := m[field].(string); ok {
				signed.WriteString(field + "\n" + text + "\n")
			}
		}
		sum := sha256.Sum256([]byte(signed.String()))
		signature, err := rsa.SignPKCS1v15(rand.Reader, s.rsa, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		m["Signature"] = base64.StdEncoding.EncodeToString(signature)
		header.Set("Content-Type", "text/plain; charset=UTF-8")
		return provider.Request{Header: header, Body: write(m)}
	case provider.SendGrid:
		body := write(payload)
		sum := sha256.Sum256(append([]byte(stamp), body...))
		signature, err := ecdsa.SignASN1(rand.Reader, s.ec, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		header.Set("X-Twilio-Email-Event-Webhook-Timestamp", stamp)
		header.Set("X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(signature))
		return provider.Request{Header: header, Body: body}
	case provider.Mailgun:
		token := rand.Text()
		mac := hmac.New(sha256.New, []byte(hookMailgun))
		mac.Write([]byte(stamp + token))
		signature := object{"timestamp": stamp, "token": token, "signature": hex.EncodeToString(mac.Sum(nil))}
		m := payload.(object)
		if _, ok := m["event-data"]; ok {
			m["signature"] = signature
			return provider.Request{Header: header, Body: write(m)}
		}
		maps.Copy(m, signature)
		form := url.Values{}
		for field, value := range m {
			for _, text := range texts(value) {
				form.Add(field, text)
			}
		}
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		return provider.Request{Header: header, Body: []byte(form.Encode())}
	case provider.Postal:
		body := write(payload)
		sum := sha256.Sum256(body)
		signature, err := rsa.SignPKCS1v15(rand.Reader, s.rsa, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		header.Set("X-Postal-Signature-256", base64.StdEncoding.EncodeToString(signature))
		return provider.Request{Header: header, Body: body}
	case provider.Mandrill:
		mac := hmac.New(sha1.New, []byte(hookSecret))
		fmt.Fprintf(mac, "https://%s/webhooks/provider/mandrillmandrill_events%s", hookHost, write(payload))
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		header.Set("X-Mandrill-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return provider.Request{Header: header,
			Body: []byte(url.Values{"mandrill_events": {string(write(payload))}}.Encode())}
	case provider.Resend:
		body := write(payload)
		key, _ := base64.StdEncoding.DecodeString(hookStandard)
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "msg_1.%s.%s", stamp, body)
		header.Set("svix-id", "msg_1")
		header.Set("svix-timestamp", stamp)
		header.Set("svix-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		return provider.Request{Header: header, Body: body}
	}
	header.Set("X-Webhook-Token", hookSecret)
	return provider.Request{Header: header, Body: write(payload)}
}

func texts(value any) []string {
	if list, ok := value.([]any); ok {
		var all []string
		for _, one := range list {
			all = append(all, fmt.Sprint(one))
		}
		return all
	}
	return []string{fmt.Sprint(value)}
}

// tampered changes the signed part of a request, or the secret if nothing is signed.
func tampered(r provider.Request, name provider.Name) provider.Request {
	out := provider.Request{Header: r.Header.Clone(), Body: bytes.Clone(r.Body)}
	switch name {
	case provider.SES:
		out.Body = bytes.Replace(out.Body, []byte(`"MessageId":"`), []byte(`"MessageId":"0`), 1)
	case provider.SendGrid, provider.Resend, provider.Postal, provider.Mandrill:
		out.Body = append(out.Body, ' ')
	case provider.Mailgun:
		at := bytes.Index(out.Body, []byte("signature"))
		for i := at; i < len(out.Body); i++ {
			if c := out.Body[i]; c >= '0' && c <= '8' {
				out.Body[i]++
				break
			}
		}
	default:
		out.Header.Set("X-Webhook-Token", hookSecret+"!")
	}
	return out
}
