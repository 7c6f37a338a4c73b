package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// accepted and refused say what Verify must answer: the empty code means that it accepts.
func checkVerify(t *testing.T, v *Verifier, r Request, now time.Time, code string) {
	t.Helper()
	err := v.Verify(t.Context(), r, now)
	switch {
	case code == "" && err != nil:
		t.Errorf("refused: %v", err)
	case code != "" && err == nil:
		t.Errorf("accepted; want %s", code)
	case code != "" && fault.CodeOf(err) != code:
		t.Errorf("refused with %s (%v); want %s", fault.CodeOf(err), err, code)
	case code != "" && !fault.Is(err, fault.Unauthorized):
		t.Errorf("kind %s; want unauthorized", fault.KindOf(err))
	}
}

func newVerifier(t testing.TB, name Name, o Options) *Verifier {
	t.Helper()
	if o.Bind == nil {
		o.Bind = remembering()
	}
	v, err := New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// change is one thing done to a genuine request.
type change struct {
	name string
	do   func(*Request)
	at   time.Duration // after the signature was made
	code string
}

func (c change) run(t *testing.T, v *Verifier, genuine Request, signed time.Time) {
	t.Helper()
	r := Request{Header: genuine.Header.Clone(), Query: genuine.Query,
		Body: append([]byte(nil), genuine.Body...)}
	if c.do != nil {
		c.do(&r)
	}
	t.Run(c.name, func(t *testing.T) { checkVerify(t, v, r, signed.Add(c.at), c.code) })
}

func set(header, value string) func(*Request) {
	return func(r *Request) { r.Header.Set(header, value) }
}
func del(header string) func(*Request) { return func(r *Request) { r.Header.Del(header) } }
func flip(i int) func(*Request)        { return func(r *Request) { r.Body[i] ^= 1 } }

type sendgridVector struct {
	Headers map[string]string `json:"headers"`
	Key     string            `json:"public_key_base64_spki"`
	Body    string            `json:"body"`
}

func sendgridGenuine(t testing.TB) (Request, string, time.Time) {
	var x sendgridVector
	loadJSON(t, "signatures/sendgrid_ecdsa.json", &x)
	r := Request{Header: http.Header{}, Body: []byte(x.Body)}
	for name, value := range x.Headers {
		r.Header.Set(name, value)
	}
	seconds, _ := strconv.ParseInt(x.Headers["X-Twilio-Email-Event-Webhook-Timestamp"], 10, 64)
	return r, x.Key, time.Unix(seconds, 0)
}

// otherSendGridKey is a valid key on the right curve that signed nothing here: the base point of P-256.
const otherSendGridKey = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q=="

func TestSendGridSignature(t *testing.T) {
	genuine, key, signed := sendgridGenuine(t)
	v := newVerifier(t, SendGrid, Options{Secrets: []string{key}})
	const sig, stamp = "X-Twilio-Email-Event-Webhook-Signature", "X-Twilio-Email-Event-Webhook-Timestamp"
	for _, c := range []change{
		{name: "genuine"},
		{name: "a retry a day later", at: 24 * time.Hour},
		{name: "too old", at: 26 * time.Hour, code: codeStale},
		{name: "from the future", at: -6 * time.Minute, code: codeStale},
		{name: "a clock a little before ours", at: -4 * time.Minute},
		{name: "body changed", do: flip(20), code: codeMismatch},
		{name: "body cut", do: func(r *Request) { r.Body = r.Body[:len(r.Body)-2] }, code: codeMismatch},
		{name: "time changed", do: set(stamp, "1600112503"), code: codeMismatch},
		{name: "time written in another way", do: set(stamp, "01600112502"), code: codeMismatch},
		{name: "time is no number", do: set(stamp, "now"), code: codeMissing},
		{name: "time beyond all clocks", do: set(stamp, "99999999999999999999"), code: codeMissing},
		{name: "no time", do: del(stamp), code: codeMissing},
		{name: "no signature", do: del(sig), code: codeMissing},
		{name: "signature is not base64", do: set(sig, "%%%"), code: codeMissing},
		{name: "signature of another form", do: set(sig, base64.StdEncoding.EncodeToString(make([]byte, 64))),
			code: codeMismatch},
	} {
		c.run(t, v, genuine, signed)
	}
	t.Run("another key", func(t *testing.T) {
		checkVerify(t, newVerifier(t, SendGrid, Options{Secrets: []string{otherSendGridKey}}), genuine, signed,
			codeMismatch)
	})
	t.Run("the old key beside a new one", func(t *testing.T) {
		checkVerify(t, newVerifier(t, SendGrid, Options{Secrets: []string{otherSendGridKey, key}}), genuine, signed,
			"")
		checkVerify(t, newVerifier(t, SendGrid, Options{Secrets: []string{key, otherSendGridKey}}), genuine,
			signed.Add(48*time.Hour), codeStale)
	})
	t.Run("a window of one's own", func(t *testing.T) {
		narrow := newVerifier(t, SendGrid, Options{Secrets: []string{key}, Window: time.Minute})
		checkVerify(t, narrow, genuine, signed.Add(59*time.Second), "")
		checkVerify(t, narrow, genuine, signed.Add(61*time.Second), codeStale)
	})
}

type standardVector struct {
	Secret    string      `json:"secret"`
	KeyPair   string      `json:"secret_key_whsk_base64_seed_and_pub"`
	ID        string      `json:"msg_id"`
	Timestamp json.Number `json:"timestamp"`
	Payload   string      `json:"payload"`
	Signature string      `json:"signature"`
	Invalid   []string    `json:"invalid_secrets"`
}

func standardGenuine(t testing.TB, file string) (standardVector, Request, time.Time) {
	var x standardVector
	loadJSON(t, file, &x)
	seconds, _ := x.Timestamp.Int64()
	h := http.Header{}
	h.Set("webhook-id", x.ID)
	h.Set("webhook-timestamp", x.Timestamp.String())
	h.Set("webhook-signature", x.Signature)
	return x, Request{Header: h, Body: []byte(x.Payload)}, time.Unix(seconds, 0)
}

func TestStandardWebhooks(t *testing.T) {
	x, genuine, signed := standardGenuine(t, "signatures/standard_webhooks_v1.json")
	y, edwards, _ := standardGenuine(t, "signatures/standard_webhooks_v1a.json")
	pair, _ := base64.StdEncoding.DecodeString(y.KeyPair)
	public := "whpk_" + base64.StdEncoding.EncodeToString(pair[32:])
	other := "whsec_" + base64.StdEncoding.EncodeToString([]byte("another secret, of 32 bytes long"))
	changes := []change{
		{name: "genuine"},
		{name: "within the window", at: 5 * time.Minute},
		{name: "too old", at: 5*time.Minute + time.Second, code: codeStale},
		{name: "from the future", at: -5*time.Minute - time.Second, code: codeStale},
		{name: "body changed", do: flip(3), code: codeMismatch},
		{name: "id changed", do: set("webhook-id", "msg_other"), code: codeMismatch},
		{name: "time changed", do: set("webhook-timestamp", "1614265331"), code: codeMismatch},
		{name: "no id", do: del("webhook-id"), code: codeMissing},
		{name: "no time", do: del("webhook-timestamp"), code: codeMissing},
		{name: "time is no number", do: set("webhook-timestamp", "1614265330.5"), code: codeMissing},
		{name: "no signature", do: del("webhook-signature"), code: codeMissing},
		{name: "signature of no version", do: func(r *Request) {
			_, bare, _ := strings.Cut(r.Header.Get("webhook-signature"), ",")
			r.Header.Set("webhook-signature", bare)
		}, code: codeMismatch},
		{name: "an empty signature", do: set("webhook-signature", "v1, v1a,"), code: codeMismatch},
		{name: "one of several fits", do: func(r *Request) {
			r.Header.Set("webhook-signature", "v2,AAAA v1,AAAA v1a,AAAA "+r.Header.Get("webhook-signature"))
		}},
		{name: "it stands behind too many others", do: func(r *Request) {
			r.Header.Set("webhook-signature", strings.Repeat("v1,AAAA ", maxSignatures)+
				r.Header.Get("webhook-signature"))
		}, code: codeMismatch},
		{name: "under the names of Svix", do: func(r *Request) {
			for _, name := range []string{"id", "timestamp", "signature"} {
				r.Header.Set("svix-"+name, r.Header.Get("webhook-"+name))
				r.Header.Del("webhook-" + name)
			}
		}},
	}
	for _, c := range changes {
		t.Run("v1", func(t *testing.T) {
			c.run(t, newVerifier(t, Resend, Options{Secrets: []string{x.Secret}}), genuine, signed)
		})
		t.Run("v1a", func(t *testing.T) {
			c.run(t, newVerifier(t, Generic, Options{Secrets: []string{public}}), edwards, signed)
		})
	}
	checkVerify(t, newVerifier(t, Resend, Options{Secrets: []string{other}}), genuine, signed, codeMismatch)
	checkVerify(t, newVerifier(t, Resend, Options{Secrets: []string{other, x.Secret}}), genuine, signed, "")
	// a public key isn't a secret, nor the other way round
	checkVerify(t, newVerifier(t, Generic, Options{Secrets: []string{x.Secret}}), edwards, signed, codeMismatch)
	for _, bad := range y.Invalid[1:] {
		if strings.HasPrefix(bad, "whpk_") {
			continue // a signing key like that is invalid; we check, and take it
		}
		if _, err := New(Resend, Options{Secrets: []string{bad}}); !fault.Is(err, fault.Invalid) {
			t.Errorf("secret %q: %v; want invalid", bad, err)
		}
	}
}

type mailgunVector struct {
	Key       string `json:"signing_key"`
	Timestamp string `json:"timestamp"`
	Token     string `json:"token"`
	Signature string `json:"signature"`
}

func TestMailgunSignature(t *testing.T) {
	var x mailgunVector
	loadJSON(t, "signatures/mailgun_hmac.json", &x)
	_, genuine := loadFixture(t, Mailgun, "delivered_event.json")
	seconds, _ := strconv.ParseInt(x.Timestamp, 10, 64)
	signed := time.Unix(seconds, 0)
	replace := func(from, to string) func(*Request) {
		return func(r *Request) { r.Body = []byte(strings.Replace(string(r.Body), from, to, 1)) }
	}
	for _, c := range []change{
		{name: "genuine"},
		{name: "a retry 8 hours later", at: 8 * time.Hour},
		{name: "too old", at: 10 * time.Hour, code: codeStale},
		{name: "from the future", at: -6 * time.Minute, code: codeStale},
		{name: "token changed", do: replace(x.Token, "7"+x.Token[1:]), code: codeMismatch},
		{name: "time changed", do: replace(`"timestamp": "1534108637"`, `"timestamp": "1534108638"`),
			code: codeMismatch},
		{name: "signature changed", do: replace(x.Signature, "3"+x.Signature[1:]), code: codeMismatch},
		{name: "signature cut", do: replace(x.Signature, x.Signature[:62]), code: codeMismatch},
		{name: "signature is not hex", do: replace(x.Signature, "signature"), code: codeMissing},
		{name: "no token", do: replace(`"token"`, `"no-token"`), code: codeMissing},
		{name: "no signature", do: replace(`"signature": {`, `"no-signature": {`), code: codeMissing},
		{name: "no event", do: replace(`"event-data"`, `"event-date"`), code: codeMissing},
		{name: "a second signature in the same body",
			do: replace(`"event-data": {`, `"signature": {}, "event-data": {`), code: codeMissing},
		{name: "not JSON", do: func(r *Request) { r.Body = r.Body[1:] }, code: codeMissing},
	} {
		c.run(t, newVerifier(t, Mailgun, Options{Secrets: []string{x.Key}}), genuine, signed)
	}
	checkVerify(t, newVerifier(t, Mailgun, Options{Secrets: []string{"another key of Mailgun"}}), genuine,
		signed, codeMismatch)
	checkVerify(t, newVerifier(t, Mailgun, Options{Secrets: []string{"another key of Mailgun", x.Key}}), genuine,
		signed, "")
}

// Every fixture of Mailgun was signed by its rule, in both forms.
func TestMailgunFixturesAreSigned(t *testing.T) {
	v := newVerifier(t, Mailgun, Options{Secrets: []string{"TEST_WEBHOOK_SIGNING_KEY"},
		Window: 50 * 365 * 24 * time.Hour, Bind: forgetful})
	for row := range fixtureTable {
		name, file, _ := strings.Cut(row, "/")
		if name != string(Mailgun) {
			continue
		}
		t.Run(file, func(t *testing.T) {
			_, r := loadFixture(t, Mailgun, file)
			checkVerify(t, v, r, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), "")
		})
	}
}

// remembering remembers every token.
func remembering() func(context.Context, string, string, time.Time) (string, error) {
	var known sync.Map
	return func(_ context.Context, token, digest string, _ time.Time) (string, error) {
		bound, _ := known.LoadOrStore(token, digest)
		return bound.(string), nil
	}
}

// forgetful knows no token.
func forgetful(_ context.Context, _, digest string, _ time.Time) (string, error) {
	return digest, nil
}

// brokenTokens is a store that is away.
func brokenTokens(context.Context, string, string, time.Time) (string, error) {
	return "", errors.New("connection refused")
}

// Mailgun signs no body: a signature that was seen once must not carry another event. The same request again
// is its retry.
func TestMailgunTokenCarriesOneBody(t *testing.T) {
	var x mailgunVector
	loadJSON(t, "signatures/mailgun_hmac.json", &x)
	_, genuine := loadFixture(t, Mailgun, "delivered_event.json")
	now := time.Unix(1534108637, 0)
	v := newVerifier(t, Mailgun, Options{Secrets: []string{x.Key}})
	checkVerify(t, v, genuine, now, "")
	checkVerify(t, v, genuine, now.Add(time.Hour), "")
	spaced := genuine
	spaced.Body = []byte("\n" + string(genuine.Body) + "\n")
	checkVerify(t, v, spaced, now, "")
	forged := genuine
	forged.Body = []byte(strings.Replace(string(genuine.Body), "recipient@example.com", "victim@example.com", 1))
	checkVerify(t, v, forged, now, codeReused)
	checkVerify(t, v, genuine, now, "")

	away := newVerifier(t, Mailgun, Options{Secrets: []string{x.Key}, Bind: brokenTokens})
	if err := away.Verify(t.Context(), genuine, now); !fault.Is(err, fault.Unavailable) {
		t.Errorf("with the store away: %v; want unavailable", err)
	}
}

func TestSharedSecrets(t *testing.T) {
	const plain, pair = "a-secret-of-good-length", "postmark:a-secret-of-good-length"
	basic := func(s string) http.Header {
		return http.Header{"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(s))}}
	}
	query := func(s string) url.Values { return url.Values{"token": {s}} }
	for _, c := range []struct {
		name    string
		secrets []string
		header  http.Header
		query   url.Values
		code    string
	}{
		{"basic, user and password", []string{pair}, basic(pair), nil, ""},
		{"basic, any user", []string{plain}, basic("anybody:" + plain), nil, ""},
		{"basic, wrong user", []string{pair}, basic("mailjet:a-secret-of-good-length"), nil, codeMismatch},
		{"basic, wrong password", []string{plain}, basic("x:nope"), nil, codeMismatch},
		{"basic, not base64", []string{plain}, http.Header{"Authorization": {"Basic %%%"}}, nil, codeMissing},
		{"basic, empty", []string{plain}, http.Header{"Authorization": {"Basic "}}, nil, codeMissing},
		{"bearer", []string{plain}, http.Header{"Authorization": {"bearer  " + plain}}, nil, ""},
		{"bearer, longer", []string{plain}, http.Header{"Authorization": {"Bearer " + plain + "x"}}, nil,
			codeMismatch},
		{"bearer, shorter", []string{plain}, http.Header{"Authorization": {"Bearer " + plain[1:]}}, nil,
			codeMismatch},
		{"a header", []string{plain}, http.Header{"X-Webhook-Token": {plain}}, nil, ""},
		{"SparkPost's header", []string{plain}, http.Header{"X-Messagesystems-Webhook-Token": {plain}}, nil, ""},
		{"the address", []string{plain}, nil, query(plain), ""},
		{"the address, wrong", []string{plain}, nil, query("wrong"), codeMismatch},
		{"the address, empty", []string{plain}, nil, query(""), codeMissing},
		{"nothing", []string{plain}, http.Header{}, nil, codeMissing},
		{"the old one while there is a new one", []string{"the-new-secret-of-today", plain}, nil, query(plain), ""},
		{"a huge one", []string{plain}, nil, query(strings.Repeat(plain, 1000)), codeMissing},
	} {
		for _, name := range []Name{Postmark, Mailjet, SparkPost, Brevo, Generic} {
			t.Run(c.name+" "+string(name), func(t *testing.T) {
				v := newVerifier(t, name, Options{Secrets: c.secrets})
				checkVerify(t, v, Request{Header: c.header, Query: c.query, Body: []byte("{}")}, time.Now(), c.code)
			})
		}
	}
}

// What a provider signs can't be replaced by knowing the secret's name: a token in the address isn't a
// signature.
func TestSignersTakeNoSharedSecret(t *testing.T) {
	_, key, _ := sendgridGenuine(t)
	for name, secret := range map[Name]string{SendGrid: key, Mailgun: "TEST_WEBHOOK_SIGNING_KEY",
		Resend: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", SES: testTopic} {
		v := newVerifier(t, name, Options{Secrets: []string{secret}})
		r := Request{Header: http.Header{"Authorization": {"Bearer " + secret}}, Query: url.Values{
			"token": {secret}}, Body: []byte("{}")}
		if err := v.Verify(t.Context(), r, time.Now()); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v; want unauthorized", name, err)
		}
	}
}

func TestNewRefusesWhatCannotBeASecret(t *testing.T) {
	for _, c := range []struct {
		name    Name
		secrets []string
		kind    fault.Kind
	}{
		{"nobody", []string{"a-secret-of-good-length"}, fault.NotFound},
		{Postmark, nil, fault.Invalid},
		{Postmark, []string{""}, fault.Invalid},
		{Postmark, []string{"short"}, fault.Invalid},
		{Postmark, []string{"with a line feed\nin it"}, fault.Invalid},
		{Postmark, make([]string, maxSecrets+1), fault.Invalid},
		{SES, []string{"*"}, fault.Invalid},
		{SES, []string{"arn:aws:sns:eu-west-1:123456789012:*"}, fault.Invalid},
		{SendGrid, []string{"not a key"}, fault.Invalid},
		{SendGrid, []string{"AAAA"}, fault.Invalid},
		{Mailgun, []string{"short"}, fault.Invalid},
		{Resend, []string{"a-secret-of-good-length"}, fault.Invalid},
		{Resend, []string{"whsec_AAAA"}, fault.Invalid},
		{Generic, []string{"whpk_AAAA"}, fault.Invalid},
		// a private key is not for us to know
		{Generic, []string{"whsk_" + strings.Repeat("A", 88)}, fault.Invalid},
	} {
		_, err := New(c.name, Options{Secrets: c.secrets})
		if !fault.Is(err, c.kind) {
			t.Errorf("%s %q: %v; want %s", c.name, c.secrets, err, c.kind)
		}
		for _, s := range c.secrets {
			if err != nil && len(s) > 1 && strings.Contains(err.Error(), s) {
				t.Errorf("the error shows the secret: %v", err)
			}
		}
	}
}
