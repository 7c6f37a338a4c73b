package provider

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/dialing"
)

const (
	testTopic = "arn:aws:sns:eu-west-1:123456789012:mail-events"
	testCert  = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem"
)

// recorded is a Transport with what was fetched once. It counts how often it is asked.
type recorded struct {
	mu    sync.Mutex
	pages map[string]string
	err   error
	asked []string
}

// RoundTrip implements http.RoundTripper.
func (r *recorded) RoundTrip(q *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, q.URL.String())
	if r.err != nil {
		return nil, r.err
	}
	return &http.Response{StatusCode: http.StatusOK,
		Body:    io.NopCloser(strings.NewReader(r.pages[q.URL.String()])),
		Request: q}, nil
}

type snsVector struct {
	Cert     string              `json:"cert_pem"`
	Messages []map[string]string `json:"messages"`
}

func (x snsVector) pages() map[string]string {
	return map[string]string{x.Messages[0]["SigningCertURL"]: x.Cert}
}

func encode(t testing.TB, m map[string]string) Request {
	t.Helper()
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return Request{Header: http.Header{"Content-Type": {"text/plain; charset=UTF-8"}}, Body: raw}
}

func TestSNSGenuine(t *testing.T) {
	var x snsVector
	loadJSON(t, "signatures/sns_genuine.json", &x)
	now := time.Date(2022, 7, 28, 21, 30, 0, 0, time.UTC)
	for _, m := range x.Messages {
		o := Options{Secrets: []string{m["TopicArn"]}, Transport: &recorded{pages: x.pages()}}
		v := newVerifier(t, SES, o)
		run := func(name, code string, at time.Time, do func(map[string]string)) {
			changed := map[string]string{}
			for k, s := range m {
				changed[k] = s
			}
			if do != nil {
				do(changed)
			}
			t.Run("version "+m["SignatureVersion"]+" "+name, func(t *testing.T) {
				checkVerify(t, v, encode(t, changed), at, code)
			})
		}
		put := func(name, value string) func(map[string]string) {
			return func(m map[string]string) {
				m[name] = value
			}
		}
		run("as it was", "", now, nil)
		run("an hour later", "", now.Add(time.Hour), nil)
		run("too old", codeStale, now.Add(2*time.Hour), nil)
		run("from the future", codeStale, now.Add(-time.Hour), nil)
		run("message changed", codeMismatch, now, put("Message", "Hello World"))
		run("id changed", codeMismatch, now, put("MessageId", "792cda85-518f-5dd3-9163-81d851212f3b"))
		run("time changed", codeMismatch, now, put("Timestamp", "2022-07-28T21:25:00.000Z"))
		run("subject added", codeMismatch, now, put("Subject", "hello"))
		run("another topic", codeTopic, now, put("TopicArn", testTopic))
		run("another type", codeMissing, now, put("Type", "SubscriptionConfirmation"))
		run("signature changed", codeMismatch, now, func(m map[string]string) {
			m["Signature"] = "A" + m["Signature"][1:]
		})
		run("no signature", codeMissing, now, func(m map[string]string) { delete(m, "Signature") })
		run("signature not base64", codeMissing, now, put("Signature", "%"))
		run("no time", codeMissing, now, func(m map[string]string) { delete(m, "Timestamp") })
		run("the other version", codeMismatch, now,
			put("SignatureVersion", map[string]string{"1": "2", "2": "1"}[m["SignatureVersion"]]))
		run("version 3", codeMissing, now, put("SignatureVersion", "3"))
		run("no address of a certificate", codeCertificate, now, func(m map[string]string) {
			delete(m, "SigningCertURL")
		})
	}
}

func TestSNSCertificateAddress(t *testing.T) {
	certs := &recorded{err: errors.New("must not be asked")}
	v := newVerifier(t, SES, Options{Secrets: []string{testTopic}, Transport: certs})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, address := range []string{
		"http://sns.eu-west-1.amazonaws.com/a.pem",
		"https://sns.eu-west-1.amazonaws.com.evil.example/a.pem",
		"https://sns.eu-west-1.amazonaws.com@evil.example/a.pem",
		"https://evil.example/sns.eu-west-1.amazonaws.com/a.pem",
		"https://user@sns.eu-west-1.amazonaws.com/a.pem",
		"https://sns.eu-west-1.amazonaws.com:8443/a.pem",
		"https://sns.eu-west-1.amazonaws.com./a.pem",
		"https://sns.amazonaws.com/a.pem",
		"https://s3.eu-west-1.amazonaws.com/bucket/a.pem",
		"https://sns.bucket.s3.amazonaws.com/a.pem",
		"https://sns-eu-west-1.amazonaws.com/a.pem",
		"https://xsns.eu-west-1.amazonaws.com/a.pem",
		"https://sns.eu-west-1.amazonaws.com/a.txt",
		"https://sns.eu-west-1.amazonaws.com/a.txt?x=.pem",
		"https://sns.eu-west-1.amazonaws.com/a.pem?x=1",
		"https://sns.eu-west-1.amazonaws.com/a.pem#x",
		"https://sns.eu-west-1.amazonaws.com/a.txt#.pem",
		"https://sns.eu-west-1.amazonaws.org/a.pem",
		"https:sns.eu-west-1.amazonaws.com/a.pem",
		"//sns.eu-west-1.amazonaws.com/a.pem",
		"https://" + strings.Repeat("a", 3000) + ".pem",
		"",
	} {
		m := map[string]string{"Type": "Notification", "MessageId": "1", "TopicArn": testTopic, "Message": "m",
			"Timestamp":        now.Format(time.RFC3339Nano),
			"SignatureVersion": "1", "Signature": "AAAA", "SigningCertURL": address}
		checkVerify(t, v, encode(t, m), now, codeCertificate)
	}
	if len(certs.asked) > 0 {
		t.Errorf("fetched %q", certs.asked)
	}
	for _, address := range []string{testCert, "https://sns.us-gov-west-1.amazonaws.com/a.pem",
		"https://sns.cn-north-1.amazonaws.com.cn/a.pem"} {
		if _, ok := snsAddress(address); !ok {
			t.Errorf("%s refused", address)
		}
	}
}

// authority is a root, one certificate below it, and one of SNS below that.
type authority struct {
	root, between, leaf *x509.Certificate
	key                 *rsa.PrivateKey
}

func newAuthority(t testing.TB, name string, from, to time.Time) authority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048) // one key for all three: making them is what takes time
	if err != nil {
		t.Fatal(err)
	}
	issue := func(serial int64, cn string, ca bool, parent *x509.Certificate) *x509.Certificate {
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: cn},
			NotBefore: from, NotAfter: to,
			IsCA: ca, BasicConstraintsValid: true, SubjectKeyId: []byte{byte(serial)}}
		if !ca {
			template.DNSNames = []string{cn}
		}
		if parent == nil {
			parent = template
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	a := authority{key: key}
	a.root = issue(1, "root", true, nil)
	a.between = issue(2, "between", true, a.root)
	a.leaf = issue(3, name, false, a.between)
	return a
}

func pemOf(certs ...*x509.Certificate) string {
	var b strings.Builder
	for _, c := range certs {
		pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
	}
	return b.String()
}

// sign makes an SNS message with a signature of its version.
func (a authority) sign(t testing.TB, m map[string]string) Request {
	t.Helper()
	o := object{}
	for k, v := range m {
		o[k] = v
	}
	text, ok := snsSigned(o)
	if !ok {
		t.Fatal("nothing to sign")
	}
	hash, sum := crypto.SHA1, sha1.Sum([]byte(text))
	digest := sum[:]
	if m["SignatureVersion"] == "2" {
		long := sha256.Sum256([]byte(text))
		hash, digest = crypto.SHA256, long[:]
	}
	signature, err := rsa.SignPKCS1v15(nil, a.key, hash, digest)
	if err != nil {
		t.Fatal(err)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	return encode(t, m)
}

func snsMessage(now time.Time, more ...string) map[string]string {
	m := map[string]string{"Type": "Notification", "MessageId": "1", "TopicArn": testTopic, "Message": "m",
		"Timestamp":        now.Format(time.RFC3339Nano),
		"SignatureVersion": "2", "SigningCertURL": testCert}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

func TestSNSCertificate(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	stranger := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	expired := newAuthority(t, "sns.amazonaws.com", now.AddDate(-2, 0, 0), now.AddDate(-1, 0, 0))
	other := newAuthority(t, "s3.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	for _, c := range []struct {
		name string
		by   authority
		page string
		code string
	}{
		{"HTTPS vouches for it", a, pemOf(a.leaf), ""},
		{"expired", expired, pemOf(expired.leaf), codeCertificate},
		{"of another service", other, pemOf(other.leaf), codeCertificate},
		{"another key", stranger, pemOf(a.leaf), codeMismatch},
		{"text before it", a, "<html>" + pemOf(a.leaf), codeCertificate},
		{"text behind it", a, pemOf(a.leaf) + "x", codeCertificate},
		{"no certificate", a, "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
			codeCertificate},
		{"not even DER", a, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
			codeCertificate},
		{"an empty page", a, "", codeCertificate},
		{"very many", a, strings.Repeat(pemOf(a.leaf), 9), codeCertificate},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := Options{Secrets: []string{testTopic}, Transport: &recorded{
				pages: map[string]string{testCert: c.page}}}
			for _, version := range []string{"1", "2"} {
				checkVerify(t, newVerifier(t, SES, o), c.by.sign(t, snsMessage(now, "SignatureVersion", version)), now,
					c.code)
			}
		})
	}
}

func TestSNSTopics(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	certs := &recorded{pages: map[string]string{testCert: pemOf(a.leaf)}}
	const second = "arn:aws:sns:eu-west-1:123456789012:other"
	v := newVerifier(t, SES, Options{Secrets: []string{second, testTopic}, Transport: certs})
	checkVerify(t, v, a.sign(t, snsMessage(now)), now, "")
	checkVerify(t, v, a.sign(t, snsMessage(now, "TopicArn", second)), now, "")
	checkVerify(t, v, a.sign(t, snsMessage(now, "TopicArn", "arn:aws:sns:eu-west-1:999999999999:mail-events")),
		now, codeTopic)
	certs.err = errors.New("away")
	m := snsMessage(now, "SigningCertURL", strings.Replace(testCert, "0123", "9999", 1))
	if err := v.Verify(t.Context(), a.sign(t, m), now); !fault.Is(err, fault.Unavailable) {
		t.Errorf("certificate out of reach: %v; want unavailable", err)
	}
}

func TestCertificatesAreKept(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	certs := &recorded{pages: map[string]string{testCert: pemOf(a.leaf)}}
	v := newVerifier(t, SES, Options{Secrets: []string{testTopic}, Transport: certs})
	ask := func(at time.Time) error { return v.Verify(t.Context(), a.sign(t, snsMessage(at)), at) }
	var together sync.WaitGroup
	for range 8 {
		r := a.sign(t, snsMessage(now))
		together.Go(func() {
			if err := v.Verify(t.Context(), r, now); err != nil {
				t.Error(err)
			}
		})
	}
	together.Wait()
	if len(certs.asked) != 1 {
		t.Errorf("8 requests at once fetched %d times", len(certs.asked))
	}
	if err := ask(now.Add(23 * time.Hour)); err != nil || len(certs.asked) != 1 {
		t.Errorf("within a day: %v, fetched %d times", err, len(certs.asked))
	}
	if err := ask(now.Add(25 * time.Hour)); err != nil || len(certs.asked) != 2 {
		t.Errorf("the day after: %v, fetched %d times", err, len(certs.asked))
	}
}

func TestFailedFetchesAreRepeated(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	certs := &recorded{pages: map[string]string{testCert: pemOf(a.leaf)}, err: errors.New("away")}
	v := newVerifier(t, SES, Options{Secrets: []string{testTopic}, Transport: certs})
	r := a.sign(t, snsMessage(now))
	for range 3 {
		if err := v.Verify(t.Context(), r, now); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("%v; want unavailable", err)
		}
	}
	if len(certs.asked) != 1 {
		t.Errorf("asked %d times within a minute", len(certs.asked))
	}
	certs.err = nil
	checkVerify(t, v, r, now.Add(certificateRetry), "")
}

// The address is a stranger's word: asking for ever new ones must not make us fetch without end, nor push out
// what is in use.
func TestStrangersCannotMakeUsFetch(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	a := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	certs := &recorded{pages: map[string]string{testCert: pemOf(a.leaf)}}
	v := newVerifier(t, SES, Options{Secrets: []string{testTopic}, Transport: certs})
	if err := v.Verify(t.Context(), a.sign(t, snsMessage(now)), now); err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		m := snsMessage(now, "SigningCertURL", "https://sns.eu-west-1.amazonaws.com/"+strings.Repeat("a", i+1)+
			".pem", "Signature", "AAAA")
		if v.Verify(t.Context(), encode(t, m), now) == nil {
			t.Fatal("accepted")
		}
	}
	if len(certs.asked) != fetchesPerMinute {
		t.Errorf("fetched %d times in a minute", len(certs.asked))
	}
	for minute := range 10 {
		at := now.Add(time.Duration(minute+1) * time.Minute)
		for i := range 9 {
			m := snsMessage(at, "SigningCertURL", "https://sns.eu-west-1.amazonaws.com/"+strings.Repeat("b",
				minute*9+i+1)+".pem", "Signature", "AAAA")
			v.Verify(t.Context(), encode(t, m), at)
		}
	}
	if len(v.certs.kept) > certificatesKept {
		t.Errorf("%d addresses kept", len(v.certs.kept))
	}
	before := len(certs.asked)
	if err := v.Verify(t.Context(), a.sign(t, snsMessage(now)), now); err != nil || len(certs.asked) != before {
		t.Errorf("the certificate in use: %v, fetched %d times more", err, len(certs.asked)-before)
	}
}

func TestSNSConfirmation(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	a := newAuthority(t, "sns.amazonaws.com", now.AddDate(-1, 0, 0), now.AddDate(1, 0, 0))
	v := newVerifier(t, SES, Options{Secrets: []string{testTopic}, Transport: &recorded{
		pages: map[string]string{testCert: pemOf(a.leaf)}}})
	const good = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + testTopic +
		"&Token=2336412f37"
	m := snsMessage(now, "Type", "SubscriptionConfirmation", "Token", "2336412f37", "SubscribeURL", good)
	r := a.sign(t, m)
	checkVerify(t, v, r, now, "")
	b, err := Read(SES, r)
	if err != nil || b.Confirm == nil || b.Confirm.URL != good || b.Confirm.Topic != testTopic ||
		len(b.Events) > 0 {
		t.Fatalf("read %+v, %v", b, err)
	}
	m["SubscribeURL"] = strings.Replace(good, "2336412f37", "2336412f38", 1)
	checkVerify(t, v, encode(t, m), now, codeMismatch)
	for _, bad := range []string{
		"http" + strings.TrimPrefix(good, "https"),
		strings.Replace(good, "amazonaws.com", "amazonaws.com.evil.example", 1),
		strings.Replace(good, "sns.eu", "evil.example/sns.eu", 1),
		strings.Replace(good, "ConfirmSubscription", "Unsubscribe", 1),
		strings.Replace(good, "mail-events", "others", 1),
		strings.Replace(good, "/?", "/path?", 1),
		"https://sns.eu-west-1.amazonaws.com/",
		"",
	} {
		m["SubscribeURL"] = bad
		if b, err := Read(SES, encode(t, m)); !fault.Is(err, fault.Invalid) || b.Confirm != nil {
			t.Errorf("%s: %+v, %v; want invalid", bad, b.Confirm, err)
		}
	}
	m["Type"], m["SubscribeURL"] = "UnsubscribeConfirmation", good
	checkVerify(t, v, a.sign(t, m), now, "")
	b, err = Read(SES, encode(t, m))
	if err != nil || b.Confirm != nil || len(b.Ignored) != 1 || b.Ignored[0].Name != "unsubscribe_confirmation" {
		t.Errorf("UnsubscribeConfirmation: %+v, %v", b, err)
	}
}

func TestHTTPCertificates(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a.pem":
			w.Write([]byte("a certificate"))
		case "/moved.pem":
			http.Redirect(w, r, "/a.pem", http.StatusFound)
		case "/huge.pem":
			w.Write(make([]byte, certificateSize+1))
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	fetch := func(ctx context.Context, path string) ([]byte, error) {
		return fetchCertificate(ctx, certificateClient(server.Client().Transport), server.URL+path)
	}
	if raw, err := fetch(t.Context(), "/a.pem"); err != nil || string(raw) != "a certificate" {
		t.Errorf("%q, %v", raw, err)
	}
	for _, path := range []string{"/moved.pem", "/huge.pem", "/none.pem"} {
		if raw, err := fetch(t.Context(), path); err == nil {
			t.Errorf("%s: %d bytes", path, len(raw))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetch(ctx, "/a.pem"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The host of a certificate is Amazon's, but its name may lead elsewhere.
func TestCertificatesAreNotFetchedFromMetadata(t *testing.T) {
	t.Parallel()
	_, err := fetchCertificate(t.Context(), certificateClient(nil), "http://169.254.169.254/c.pem")
	if !errors.Is(err, dialing.ErrRefused) {
		t.Error(err)
	}
}
