package testapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/google/go-cmp/cmp"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// noon is where the clock of the fixtures stands.
var noon = time.Unix(1795770000, 0).UTC()

// fixture is one file of testdata/provider-send.
type fixture struct {
	Request struct {
		Method, Path string
		Headers      map[string]string
		Body         json.RawMessage
		Form         [][2]string
	}
	Response struct {
		Status  int
		Headers map[string]string
		Body    any
		Raw     string
	}
}

func load(t *testing.T, name string) (f fixture) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata/provider-send", name+".json"))
	if err == nil {
		err = json.Unmarshal(raw, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// account is what the requests of the fixtures are made for.
func account(name string) Options {
	o := Options{Now: func() time.Time { return noon }}
	switch name {
	case "postmark":
		o.Key = "00000000-0000-0000-0000-000000000000"
	case "resend":
		o.Key = "re_example"
	case "mailjet":
		o.Key, o.Secret = "pub", "priv"
	case "sendgrid":
		o.Key = "SG.example"
	case "ses":
		o.Key = "AKIDEXAMPLE"
	case "mailgun":
		o.Key = "key-example"
	case "sparkpost":
		o.Key = "spkey"
	case "mandrill":
		o.Key = "md-example"
	case "brevo":
		o.Key = "xkeysib-example"
	}
	return o
}

// request makes the request of a fixture, signed where the provider wants that.
func (f fixture) request(t *testing.T, s *Server, o Options) *http.Request {
	t.Helper()
	body := f.Request.Body
	boundary := ""
	if f.Request.Form != nil {
		body, boundary = form(t, f.Request.Form)
	}
	r, err := http.NewRequestWithContext(t.Context(), f.Request.Method, s.URL+f.Request.Path,
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range f.Request.Headers {
		r.Header.Set(name, strings.Replace(value, "boundary=…", "boundary="+boundary, 1))
	}
	sign(t, s.Name, o, r, body)
	return r
}

func sign(t *testing.T, name string, o Options, r *http.Request, body []byte) {
	t.Helper()
	if name == "http" {
		hook, err := standard.NewWebhook(DefaultSecret)
		if err != nil {
			t.Fatal(err)
		}
		signature, err := hook.Sign(r.Header.Get("Webhook-Id"), noon, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Webhook-Signature", signature)
	}
	if name == "ses" {
		r.Header.Del("Authorization")
		hash := fmt.Sprintf("%x", sha256.Sum256(body))
		if err := v4.NewSigner().SignHTTP(t.Context(), aws.Credentials{AccessKeyID: o.Key,
			SecretAccessKey: DefaultSecret}, r, hash, "ses", "eu-west-1", noon); err != nil {
			t.Fatal(err)
		}
	}
}

func form(t *testing.T, fields [][2]string) (body []byte, boundary string) {
	t.Helper()
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, f := range fields {
		h := textproto.MIMEHeader{"Content-Disposition": {`form-data; name="` + f[0] + `"`}}
		if text, ok := strings.CutPrefix(f[1], "(file message.mime) "); ok {
			f[1] = text
			h.Set("Content-Disposition", h.Get("Content-Disposition")+`; filename="message.mime"`)
		}
		part, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(part, f[1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), w.Boundary()
}

func send(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// state is what brings a fake into the state of a fixture.
type state struct {
	change  func(*Options)
	body    func(string) string // the request's
	request func(*http.Request)
	fault   Fault
	before  int // requests before this one, which are still under way

	delivered int
}

func inactive(addr, reason string) func(*Options) {
	return func(o *Options) { o.Inactive = map[string]string{addr: reason} }
}

func unverified(o *Options) { o.Verified = []string{"another.example"} }

func wrongKey(o *Options) { o.Key = "another" }

var states = map[string]state{
	"http/accepted":  {delivered: 1},
	"http/empty-2xx": {fault: Fault{Status: 202, Taken: true}, delivered: 1},
	"http/mixed": {change: func(o *Options) {
		o.Inactive = map[string]string{"bob@example.org": "", "cyd@example.net": "later"}
	}, delivered: 1},

	"postmark/accepted":     {delivered: 1},
	"postmark/all-inactive": {change: inactive("ann@example.net", "")},
	"postmark/batch-mixed": {body: func(b string) string {
		return strings.Replace(b, "bob@example.org", "bob@+", 1)
	}, delivered: 2},
	"postmark/delivery-delayed": {fault: Fault{Lie: func(a any) any {
		delete(a.(map[string]any), "ErrorCode")
		a.(map[string]any)["Message"] = "Message accepted, but delivery may be delayed."
		return a
	}}, delivered: 1},
	"postmark/partly-inactive":     {change: inactive("Bob@example.org", ""), delivered: 1},
	"postmark/sender-not-verified": {change: unverified},
	"postmark/token-refused": {request: func(r *http.Request) {
		r.Header.Del("X-Postmark-Server-Token")
	}},

	"resend/accepted":            {delivered: 1},
	"resend/batch-permissive":    {delivered: 2},
	"resend/domain-not-verified": {change: unverified},
	"resend/key-in-flight":       {before: 1},
	"resend/key-invalid":         {change: wrongKey},
	"resend/quota-daily":         {fault: Fault{Say: Spent}},
	"resend/rate-limited":        {fault: Fault{Say: Throttled}},

	"mailjet/accepted":          {delivered: 1},
	"mailjet/key-refused":       {change: wrongKey},
	"mailjet/malformed":         {body: func(b string) string { return b[1:] }},
	"mailjet/partial":           {delivered: 1},
	"mailjet/rate-limited-html": {fault: Fault{Say: Throttled}},

	"sendgrid/accepted":              {delivered: 1},
	"sendgrid/batch-accepted":        {delivered: 3},
	"sendgrid/batch-one-bad-address": {},
	"sendgrid/credits-used-up":       {fault: Fault{Say: Spent}},
	"sendgrid/key-revoked":           {change: wrongKey},
	"sendgrid/rate-limited":          {fault: Fault{Say: Throttled}},
	"sendgrid/sandbox":               {delivered: 1},

	"brevo/accepted":          {delivered: 1},
	"brevo/duplicate-key":     {before: 1},
	"brevo/key-refused":       {change: wrongKey},
	"brevo/no-credits":        {fault: Fault{Say: Spent}},
	"brevo/rate-limited":      {fault: Fault{Say: Throttled}},
	"brevo/sender-invalid":    {change: unverified},
	"brevo/versions-accepted": {delivered: 2},

	"ses/accepted":            {delivered: 1},
	"ses/bulk-partial":        {change: inactive("bob@example.org", "TRANSIENT_FAILURE"), delivered: 2},
	"ses/daily-quota":         {fault: Fault{Say: Spent}},
	"ses/key-refused":         {change: wrongKey},
	"ses/rate-exceeded":       {fault: Fault{Say: Throttled}},
	"ses/sender-not-verified": {change: unverified},

	"mailgun/accepted":          {delivered: 1},
	"mailgun/batch-accepted":    {delivered: 2},
	"mailgun/domain-unknown":    {change: func(o *Options) { o.Domain = "another.example" }},
	"mailgun/invalid-recipient": {},
	"mailgun/key-refused":       {change: wrongKey},
	"mailgun/rate-limited":      {fault: Fault{Say: Throttled}},
	"mailgun/wrong-path":        {},

	"sparkpost/accepted":           {delivered: 1},
	"sparkpost/batch-one-rejected": {delivered: 1},
	"sparkpost/key-refused":        {change: wrongKey},
	"sparkpost/limit-daily":        {fault: Fault{Say: Spent}},
	"sparkpost/sending-domain":     {change: unverified},
	"sparkpost/suppressed":         {change: inactive("ann@example.net", "")},

	"mandrill/accepted":    {delivered: 1},
	"mandrill/key-invalid": {change: wrongKey},
	"mandrill/mixed": {change: func(o *Options) {
		o.Inactive = map[string]string{"bob@example.org": "", "cyd@example.net": "soft-bounce"}
	}, delivered: 1},
	"mandrill/queued": {fault: Fault{Lie: func(a any) any {
		first := a.([]any)[0].(map[string]any)
		first["status"], first["queued_reason"] = "queued", "attachments"
		return a
	}}, delivered: 1},
	"mandrill/sender-unsigned": {change: unverified},
	"mandrill/validation": {body: func(b string) string {
		return strings.Replace(b, "raw_message", "message", 1)
	}},
}

// TestFixtures sends the request of each fixture and expects its answer, apart from ids and times.
func TestFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/provider-send/*/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "testdata/provider-send/"), ".json")
		if _, ok := providers[filepath.Dir(name)]; !ok {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, ok := states[name]
			if !ok {
				t.Fatal("there is no state for this fixture")
			}
			replay(t, load(t, name), filepath.Dir(name), now)
		})
	}
}

func replay(t *testing.T, f fixture, provider string, now state) {
	o := account(provider)
	s := Start(t, provider, o)
	if now.body != nil {
		f.Request.Body = json.RawMessage(now.body(string(f.Request.Body)))
	}
	r := f.request(t, s, o)
	if now.request != nil {
		now.request(r)
	}
	if now.change != nil {
		s.Change(now.change)
	}
	if now.before > 0 { // it is under way until the test ends
		s.Fail(Fault{At: Read, Wait: make(chan struct{})})
		go func() { _, _ = http.DefaultTransport.RoundTrip(f.request(t, s, o)) }()
		for !func() bool { all := s.Requests(); return len(all) == 1 && s.claimed() }() {
			time.Sleep(time.Millisecond)
		}
	}
	s.Fail(now.fault)
	res, body := send(t, r)
	if res.StatusCode != f.Response.Status {
		t.Fatalf("status %d, want %d: %s", res.StatusCode, f.Response.Status, body)
	}
	for name, want := range f.Response.Headers {
		if have := res.Header.Get(name); !strings.HasPrefix(have, want) && name != "x-message-id" || have == "" {
			t.Errorf("header %s is %q, want %q", name, have, want)
		}
	}
	if f.Response.Body == nil {
		if body != f.Response.Raw {
			t.Errorf("body is %q, want %q", body, f.Response.Raw)
		}
	} else {
		var have any
		if err := json.Unmarshal([]byte(body), &have); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if diff := cmp.Diff(plain("", f.Response.Body), plain("", have)); diff != "" {
			t.Errorf("answer (-want +have):\n%s", diff)
		}
	}
	if n := len(s.Delivered()); n != now.delivered {
		t.Errorf("%d deliveries, want %d", n, now.delivered)
	}
	for _, d := range s.Delivered() {
		// the messages of Mandrill's fixtures lack X-MC-Metadata
		if !strings.HasPrefix(d.Metadata["postroom_id"], "01JDXAMPLE000") && provider != "mandrill" {
			t.Errorf("metadata of %s: %v", d.To, d.Metadata)
		}
		if len(d.Header["Subject"]) != 1 || d.ID == "" {
			t.Errorf("delivery without subject or id: %+v\n%s", d, d.MIME)
		}
	}
}

// claimed reports whether an idempotency key is in flight.
func (s *Server) claimed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys) == 1
}

var differs = regexp.MustCompile(
	`(?i)^_?(id|messageids?|customid|messageuuid|messagehref|submittedat|erroridentifier)$`)

// plain replaces what differs each time.
func plain(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = plain(k, v[k])
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, plain(name, one))
		}
		return out
	case nil:
		return v
	}
	if differs.MatchString(name) {
		return "…"
	}
	return v
}
