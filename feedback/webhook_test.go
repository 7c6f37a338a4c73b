package feedback

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/provider"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

func TestWebhooksThatAreRefused(t *testing.T) {
	b := setup(t)
	good := said("delivered", "ann@example.net", byEcho)
	wrong := b.request(good)
	wrong.Header.Set("X-Webhook-Token", "a shared secret of somebody")
	for _, row := range []struct {
		name    string
		of      provider.Name
		request provider.Request
		kind    fault.Kind
	}{
		{"no secret", provider.Generic, provider.Request{Body: []byte(good)}, fault.Unauthorized},
		{"wrong secret", provider.Generic, wrong, fault.Unauthorized},
		{"unknown provider", "nobody", b.request(good), fault.NotFound},
		{"a provider that is not set up", provider.Mailjet, b.request(good), fault.NotFound},
		{"no JSON", provider.Generic, b.request("hello"), fault.Invalid},
		{"too large", provider.Generic, b.request(strings.Repeat(" ", provider.MaxBody+1)), fault.TooLarge},
	} {
		if _, err := b.Provider(t.Context(), Origin{Provider: row.of}, row.request, b.now()); !fault.Is(err,
			row.kind) {
			t.Errorf("%s: %v, want %s", row.name, err, row.kind)
		}
	}
	for _, stream := range streams() {
		if got := b.entries(stream); len(got) > 0 {
			t.Errorf("%s has %v", stream, got)
		}
	}
	if b.counts("generic") == nil || len(b.counts("generic")) != 0 {
		t.Errorf("counted %v", b.counts("generic"))
	}
}

// Someone who sets a webhook up sees what is wrong, and anonymous requests can't fill the disk.
func TestRefusalsAreLoggedNowAndThen(t *testing.T) {
	var log bytes.Buffer
	b := setup(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	refuse := func() {
		if _, err := b.Provider(t.Context(), Origin{Provider: provider.Generic}, provider.Request{
			Header: http.Header{"X-Webhook-Token": {"a shared secret of somebody"}}, Body: []byte("{}")},
			b.now()); err == nil {
			t.Fatal("it was taken")
		}
	}
	for range 100 {
		refuse()
	}
	b.advance(time.Minute)
	refuse()
	if got := strings.Count(log.String(), "code=SignatureMismatch"); got != 2 ||
		strings.Contains(log.String(), "of somebody") || strings.Contains(log.String(), testSecret) {
		t.Errorf("%d lines:\n%s", got, log.String())
	}
}

func TestWrongSecretsAreNamed(t *testing.T) {
	parts := setup(t).Parts
	_, err := New(parts, Options{Providers: map[provider.Name][]string{provider.SES: {"hello"}}})
	if err == nil || !strings.Contains(err.Error(), "feedback.providers.ses") {
		t.Errorf("%v", err)
	}
	if _, err := New(Parts{}, Options{}); err == nil {
		t.Error("New works with nothing")
	}
}

// No provider gets an answer that a fact was accepted while it could not be written down; each gets one that
// makes it come back.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := setupOn(t, testredis.Connect(t, redisdb.Options{URL: server.URL()}))
	server.Kill()
	body := said("delivered", "ann@example.net", byEcho)
	_, err := b.Provider(t.Context(), Origin{Provider: provider.Generic}, b.request(body), b.now())
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want unavailable", err)
	}
	brevo := `{"event":"delivered","email":"ann@example.net","ts_epoch":1763719200000,"message-id":"<own@shop.example>"}`
	_, err = b.Provider(t.Context(), Origin{Provider: provider.Brevo}, b.request(brevo), b.now())
	if !fault.Is(err, fault.Limited) {
		t.Errorf("Brevo: %v, want limited", err)
	}
	if _, err := b.Status(t.Context()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("status: %v, want unavailable", err)
	}
	server.Restart(t)
	b.eventually("Redis is back", func() bool {
		_, err := b.Provider(t.Context(), Origin{Provider: provider.Generic}, b.request(body), b.now())
		return err == nil
	})
	b.run()
	b.eventually("it is applied", func() bool { return len(b.box.all()) == 1 })
}

// mailgunBody is a webhook of Mailgun, signed.
func mailgunBody(key, token, recipient string, at time.Time) string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(stamp + token))
	return fmt.Sprintf(`{"signature":{"timestamp":%q,"token":%q,"signature":%q},"event-data":{"event":"complained","id":"e1","timestamp":%s.5,"recipient":%q,"user-variables":{"postroom_id":%q}}}`,
		stamp, token, hex.EncodeToString(mac.Sum(nil)), stamp, recipient, ann)
}

// A token of Mailgun carries one event, whichever process hears it; its repetition is a repetition.
func TestTokensAreKnownToAllProcesses(t *testing.T) {
	mailgun := func(o *Options) {
		o.Providers = map[provider.Name][]string{provider.Mailgun: {"the signing key of Mailgun"}}
	}
	one := setup(t, mailgun)
	other := setupOn(t, one.db, mailgun)
	genuine := mailgunBody("the signing key of Mailgun", "token-1", "ann@example.net", one.now())
	for range 2 {
		for _, b := range []*bundle{one, other} {
			if _, err := b.Provider(t.Context(), Origin{Provider: provider.Mailgun},
				provider.Request{Body: []byte(genuine)},
				b.now()); err != nil {
				t.Fatal(err)
			}
		}
	}
	forged := strings.Replace(genuine, "ann@example.net", "victim@example.net", 1)
	if _, err := other.Provider(t.Context(), Origin{Provider: provider.Mailgun},
		provider.Request{Body: []byte(forged)},
		other.now()); fault.CodeOf(err) != "TokenReused" {
		t.Errorf("a forged event: %v", err)
	}
	keys, err := one.db.Client().Keys(t.Context(), tokenKey("*")).Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %v, %v", keys, err)
	}
	if life := one.db.Client().TTL(t.Context(), keys[0]).Val(); life < 8*time.Hour || life > 10*time.Hour {
		t.Errorf("the token is kept for %v", life)
	}
	if err := one.applyAll(); err != nil {
		t.Fatal(err)
	}
	if got := one.box.all(); len(got) != 1 {
		t.Errorf("learnt %v", got)
	}
}

const (
	testTopic = "arn:aws:sns:eu-west-1:123456789012:mail-events"
	testCert  = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
)

// amazon signs as SNS does, with its own certificate, and is where subscriptions are confirmed.
type amazon struct {
	key  *rsa.PrivateKey
	cert []byte

	mu      sync.Mutex
	visited []string
	answer  int
}

func newAmazon(t *testing.T, now time.Time) *amazon {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sns.amazonaws.com"}, DNSNames: []string{
			"sns.amazonaws.com"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &amazon{key: key, cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		answer: http.StatusOK}
}

// RoundTrip implements http.RoundTripper, for the certificate and for confirmations.
func (a *amazon) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() == testCert {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(a.cert)),
			Request: r}, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.visited = append(a.visited, r.URL.String())
	header := http.Header{}
	if a.answer == http.StatusFound {
		header.Set("Location", "http://169.254.169.254/latest/meta-data/")
	}
	return &http.Response{StatusCode: a.answer, Header: header, Body: io.NopCloser(strings.NewReader("")),
		Request: r}, nil
}

// confirmation is a signed request to confirm a subscription.
func (a *amazon) confirmation(t *testing.T, topic, subscribe string, at time.Time) provider.Request {
	t.Helper()
	m := map[string]string{
		"Type": "SubscriptionConfirmation", "MessageId": "m1", "Token": "tok", "TopicArn": topic,
		"Message": "You have chosen to subscribe", "SubscribeURL": subscribe,
		"Timestamp": at.Format("2006-01-02T15:04:05.000Z"), "SignatureVersion": "2", "SigningCertURL": testCert,
	}
	var signed strings.Builder
	for _, name := range []string{"Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn",
		"Type"} {
		signed.WriteString(name + "\n" + m[name] + "\n")
	}
	sum := sha256.Sum256([]byte(signed.String()))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return provider.Request{Header: http.Header{"Content-Type": {"text/plain; charset=UTF-8"}}, Body: raw}
}

func TestSubscriptionsAreConfirmed(t *testing.T) {
	const visit = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + testTopic +
		"&Token=tok"
	a := newAmazon(t, startOfTime)
	b := setup(t, func(o *Options) {
		o.Providers = map[provider.Name][]string{provider.SES: {testTopic}}
		o.Transport = a
	})
	for _, row := range []struct {
		name             string
		topic, subscribe string
		status           int
		kind             fault.Kind // empty if it is confirmed
		visits           int
	}{
		{"a topic of ours", testTopic, visit, 200, "", 1},
		{"somebody else's topic", testTopic + "-2", strings.Replace(visit, testTopic, testTopic+"-2", 1), 200,
			fault.Unauthorized, 0},
		{"an address elsewhere", testTopic,
			"https://sns.eu-west-1.amazonaws.com.example.org/?Action=ConfirmSubscription&TopicArn=" + testTopic, 200,
			fault.Invalid, 0},
		{"an address within", testTopic, "https://169.254.169.254/?Action=ConfirmSubscription&TopicArn=" +
			testTopic, 200, fault.Invalid, 0},
		{"another topic's address", testTopic, strings.Replace(visit, testTopic, testTopic+"-2", 1), 200,
			fault.Invalid, 0},
		{"a redirect is not followed", testTopic, visit, http.StatusFound, fault.Unavailable, 1},
		{"Amazon fails", testTopic, visit, 500, fault.Unavailable, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			a.visited, a.answer = nil, row.status
			receipt, err := b.Provider(t.Context(), Origin{Provider: provider.SES},
				a.confirmation(t, row.topic, row.subscribe, b.now()),
				b.now())
			if row.kind == "" && (err != nil || !receipt.Confirmed) || row.kind != "" && !fault.Is(err, row.kind) {
				t.Errorf("%+v, %v; want %q", receipt, err, row.kind)
			}
			if len(a.visited) != row.visits {
				t.Errorf("visited %v", a.visited)
			}
		})
	}
	forged := a.confirmation(t, testTopic, visit, b.now())
	forged.Body = []byte(strings.Replace(string(forged.Body), "You have chosen", "You have not chosen", 1))
	a.visited = nil
	if _, err := b.Provider(t.Context(), Origin{Provider: provider.SES}, forged, b.now()); !fault.Is(err,
		fault.Unauthorized) ||
		len(a.visited) > 0 {
		t.Errorf("a forged one: %v, visited %v", err, a.visited)
	}
}

// Whatever the name server says, only public addresses are dialed.
func TestConfirmingClientStaysOutside(t *testing.T) {
	t.Parallel()
	client := confirmingClient(nil)
	for _, address := range []string{"https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/",
		"https://10.0.0.1/", "https://localhost/", "https://[::ffff:127.0.0.1]/"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "destination refused") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestProvidersOwnWords(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{false, true} {
		b := setup(t, func(o *Options) { o.KeepRaw = keep })
		if _, err := b.Provider(t.Context(), Origin{Provider: provider.Generic},
			b.request(said("delivered", "ann@example.net", byEcho)), b.now()); err != nil {
			t.Fatal(err)
		}
		all := b.entries(deliveries)
		if len(all) != 1 || strings.Contains(fmt.Sprint(all[0].Values), `"raw":{"metadata":`) != keep {
			t.Errorf("keep %t: %+v", keep, all)
		}
	}
}
