package testapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gomail "github.com/emersion/go-message/mail"

	webhook "github.com/postroom/postroom/internal/provider"
)

// exchange sends a provider's first fixture with another body, on its own connection.
func exchange(t *testing.T, s *Server, change func(string) string) (*http.Response, string, error) {
	t.Helper()
	f := load(t, s.Name+"/accepted")
	if change != nil {
		f.Request.Body = json.RawMessage(change(string(f.Request.Body)))
		for i := range f.Request.Form {
			f.Request.Form[i][1] = change(f.Request.Form[i][1])
		}
	}
	r := f.request(t, s, account(s.Name))
	c := &http.Transport{DisableCompression: true}
	t.Cleanup(c.CloseIdleConnections)
	res, err := c.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, string(body), err
}

func start(t *testing.T, name string) *Server { return Start(t, name, account(name)) }

func TestFaults(t *testing.T) {
	open := make(chan struct{})
	close(open)
	for _, c := range []struct {
		name      string
		fault     Fault
		status    int // 0 means no answer
		cut       bool
		complete  bool
		delivered int
	}{
		{name: "none", status: 200, complete: true, delivered: 1},
		{name: "headers", fault: Fault{At: Headers}},
		{name: "body", fault: Fault{At: Body}},
		{name: "read", fault: Fault{At: Read}, complete: true},
		{name: "read and taken", fault: Fault{At: Read, Taken: true}, complete: true, delivered: 1},
		{name: "answer", fault: Fault{At: Answer}, status: 200, cut: true, complete: true, delivered: 1},
		{name: "drip", fault: Fault{At: Answer, Wait: open}, status: 200, complete: true, delivered: 1},
		{name: "late", fault: Fault{At: Accept, Wait: open}, status: 200, complete: true, delivered: 1},
		{name: "late headers", fault: Fault{At: Headers, Wait: open}, status: 200, complete: true, delivered: 1},
		{name: "late answer", fault: Fault{At: Read, Wait: open}, status: 200, complete: true, delivered: 1},
		{name: "slow after the delivery", fault: Fault{At: Read, Wait: open, Taken: true}, status: 200,
			complete: true, delivered: 1},
		{name: "502", fault: Fault{Status: 502, Body: "<html>"}, status: 502, complete: true},
		{name: "502 and taken", fault: Fault{Status: 502, Taken: true}, status: 502, complete: true, delivered: 1},
		{name: "302", fault: Fault{Status: 302, Header: map[string]string{"Location": "/"}}, status: 302,
			complete: true},
		{name: "down", fault: Fault{Say: Down}, status: 503, complete: true},
		{name: "expired", fault: Fault{Expire: true}, status: 401, complete: true},
		{name: "gzip", fault: Fault{Gzip: true}, status: 200, complete: true, delivered: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, "postmark")
			s.Fail(c.fault)
			res, _, err := exchange(t, s, nil)
			if status := 0; res != nil {
				status = res.StatusCode
				if status != c.status {
					t.Errorf("status %d, want %d", status, c.status)
				}
			} else if c.status != 0 {
				t.Error(err)
			}
			if broken := err != nil; broken != (c.cut || c.status == 0) {
				t.Errorf("error %v", err)
			}
			all := s.Requests()
			if len(all) != 1 || all[0].Complete != c.complete || len(s.Delivered()) != c.delivered {
				t.Errorf("%d requests, complete %v, %d deliveries", len(all), all[0].Complete, len(s.Delivered()))
			}
		})
	}
}

// TestRefusedConnections: faults at Accept take one connection each.
func TestRefusedConnections(t *testing.T) {
	s := start(t, "resend")
	s.Fail(Fault{Say: Throttled}, Fault{At: Accept}, Fault{At: Accept})
	if res, _, err := exchange(t, s, nil); err != nil || res.StatusCode != 429 {
		t.Fatal(res, err)
	}
	for range 2 {
		if _, _, err := exchange(t, s, nil); err == nil {
			t.Error("the connection was accepted")
		}
	}
	if res, _, err := exchange(t, s, nil); err != nil || res.StatusCode != 200 || len(s.Requests()) != 2 {
		t.Fatal(res, err, len(s.Requests()))
	}
}

func TestLargeAnswer(t *testing.T) {
	s := start(t, "sendgrid")
	s.FailAlways(Fault{Status: 200, Body: "<html>", Length: 1 << 20})
	for range 2 {
		if _, body, err := exchange(t, s, nil); err != nil || len(body) != 1<<20 || body[6:12] != "<html>" {
			t.Errorf("%d bytes, %v", len(body), err)
		}
	}
}

// TestOneByteAtATime: the answer comes as the channel says, and a client that leaves ends it.
func TestOneByteAtATime(t *testing.T) {
	s := start(t, "postmark")
	tick := make(chan struct{})
	s.Fail(Fault{At: Answer, Wait: tick})
	f := load(t, "postmark/accepted")
	res, err := http.DefaultTransport.RoundTrip(f.request(t, s, account("postmark")))
	if err != nil {
		t.Fatal(err)
	}
	half, err := io.ReadAll(io.LimitReader(res.Body, res.ContentLength/2))
	if err != nil || len(half) == 0 {
		t.Fatal(err)
	}
	tick <- struct{}{}
	if n, err := io.ReadFull(res.Body, make([]byte, 1)); n != 1 || err != nil {
		t.Error(n, err)
	}
	res.Body.Close()
}

// TestLies changes the answers of all providers. What a lie is about may be absent.
func TestLies(t *testing.T) {
	changes := map[string]func(any) any{"foreign": Foreign, "missing": Missing, "twice": Twice,
		"index": WrongIndex, "type": WrongType, "null": Null, "id": LargeID}
	changed := map[string][]string{}
	for name := range providers {
		s := start(t, name)
		for lie, change := range changes {
			plainly, told := "", ""
			s.Fail(Fault{Lie: func(a any) any {
				raw, _ := json.Marshal(a)
				plainly = string(raw)
				return change(a)
			}})
			_, body, err := exchange(t, s, func(b string) string { return strings.Replace(b, "1042", lie, 1) })
			if err != nil {
				t.Fatal(name, lie, err)
			}
			if told = body; told != plainly && plainly != "" {
				changed[lie] = append(changed[lie], name)
			}
		}
	}
	for lie, least := range map[string]int{"foreign": 3, "missing": 3, "twice": 3, "type": 9, "null": 9,
		"id": 6} {
		if len(changed[lie]) < least {
			t.Errorf("%s changed the answers of %v", lie, changed[lie])
		}
	}
	list := any([]any{object{"index": json.Number("1")}})
	if WrongIndex(list).([]any)[0].(object)["index"] != 1001 {
		t.Error("the index is right")
	}
}

// TestEveryProviderRefuses: a wrong key, a cut body and an address of a wrong syntax deliver nothing.
func TestEveryProviderRefuses(t *testing.T) {
	for name := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, name)
			if _, body, err := exchange(t, s, func(b string) string {
				return strings.ReplaceAll(b, "ann@example.net", "ann@@example.net")
			}); err != nil || len(s.Delivered()) != 0 {
				t.Errorf("a wrong address: %v: %s", err, body)
			}
			s = start(t, name)
			s.Fail(Fault{At: Body})
			if _, _, err := exchange(t, s, nil); err == nil || len(s.Delivered()) != 0 {
				t.Error("a cut body was taken")
			}
			for _, say := range []Say{Throttled, Spent, Down} {
				s.Fail(Fault{Say: say})
				if res, body, err := exchange(t, s, nil); err != nil || res.StatusCode < 400 {
					t.Errorf("%s: %v %s", say, err, body)
				}
			}
			r := load(t, name+"/accepted").request(t, s, account(name))
			r.URL.Path = "/no/such/path"
			if res, _ := send(t, r); res.StatusCode == 202 || len(s.Delivered()) != 0 {
				t.Errorf("a wrong path: %d", res.StatusCode)
			}
			if res, _, err := exchange(t, s, nil); err != nil || res.StatusCode > 202 ||
				s.Count("Ann@example.net") != 1 {
				t.Fatalf("the genuine request: %v", err)
			}
			s.Change(func(o *Options) { o.Key, o.Secret = "another", "another" })
			if res, body, err := exchange(t, s, nil); err != nil || res.StatusCode < 400 || s.Count("") != 1 {
				t.Errorf("a wrong key: %v: %s", err, body)
			}
		})
	}
}

func TestIdempotency(t *testing.T) {
	for name, life := range map[string]time.Duration{"http": 24 * time.Hour, "resend": 24 * time.Hour,
		"brevo": 15 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, name)
			s.Fail(Fault{At: Read, Taken: true})
			if _, _, err := exchange(t, s, nil); err == nil {
				t.Fatal("the first one was answered")
			}
			_, first, err := exchange(t, s, nil)
			_, second, _ := exchange(t, s, nil)
			if err != nil || first != second || s.Count("") != 1 {
				t.Errorf("%v: %s and %s, %d deliveries", err, first, second, s.Count(""))
			}
			if id := s.Delivered()[0].ID; name != "brevo" && !strings.Contains(first, id) {
				t.Errorf("%s, want the id %s", first, id)
			}
			res, body, _ := exchange(t, s, func(b string) string { return strings.Replace(b, "order", "bill", 1) })
			if name != "http" && res.StatusCode < 400 || s.Count("") != 1 {
				t.Errorf("other bytes: %d %s", res.StatusCode, body)
			}
			if name == "http" {
				return // an old signature is refused
			}
			s.Change(func(o *Options) { o.Now = func() time.Time { return noon.Add(life + time.Second) } })
			if _, body, err := exchange(t, s, nil); err != nil || s.Count("") != 2 {
				t.Errorf("after %s: %v %s", life, err, body)
			}
		})
	}
}

// TestChecks asks the harmless calls of each provider, with the key and without.
func TestChecks(t *testing.T) {
	for name, paths := range map[string][]string{
		"postmark":  {"/server", "/domains", "/webhooks", "/message-streams/outbound/suppressions/dump"},
		"resend":    {"/domains", "/suppressions", "/webhooks"},
		"mailjet":   {"/v3/REST/sender", "/v3/REST/dns", "/v3/REST/eventcallbackurl"},
		"sendgrid":  {"/v3/scopes", "/v3/whitelabel/domains", "/v3/suppression/bounces"},
		"brevo":     {"/v3/account", "/v3/senders/domains", "/v3/webhooks", "/v3/smtp/blockedContacts"},
		"sparkpost": {"/api/v1/sending-domains", "/api/v1/suppression-list", "/api/v1/webhooks"},
		"mailgun": {"/v4/domains/mg.example.com", "/v3/mg.example.com/bounces",
			"/v3/domains/mg.example.com/webhooks"},
		"ses": {"/v2/email/account", "/v2/email/identities", "/v2/email/identities/example.com",
			"/v2/email/suppression/addresses"},
		"mandrill": {"/api/1.0/users/ping2.json", "/api/1.0/users/info.json", "/api/1.0/senders/domains.json",
			"/api/1.0/rejects/list.json", "/api/1.0/webhooks/list.json"},
	} {
		s := start(t, name)
		s.Change(func(o *Options) {
			o.Verified, o.Inactive = []string{"example.com"}, map[string]string{"dead@example.org": ""}
		})
		f := load(t, name+"/accepted")
		for _, path := range paths {
			f.Request.Path, f.Request.Method, f.Request.Form = path, http.MethodGet, nil
			f.Request.Body = nil
			if name == "mandrill" {
				f.Request.Method, f.Request.Body = http.MethodPost, json.RawMessage(`{"key": "md-example"}`)
			}
			r := f.request(t, s, account(name))
			r.Header.Set("X-Postmark-Account-Token", DefaultSecret)
			res, body := send(t, r)
			if res.StatusCode != 200 || !json.Valid([]byte(body)) {
				t.Errorf("%s %s: %d %s", name, path, res.StatusCode, body)
			}
			if about := strings.Contains(path, "omains") && !strings.Contains(path, "webhooks") ||
				strings.Contains(path, "identities"); about && name != "mailgun" && name != "ses" &&
				!strings.Contains(body, "example.com") {
				t.Errorf("%s %s: %s", name, path, body)
			}
		}
	}
}

// TestRestrictedKey: a key of Resend that may only send can't be checked.
func TestRestrictedKey(t *testing.T) {
	s := start(t, "resend")
	s.Change(func(o *Options) { o.Restricted = true })
	r := load(t, "resend/accepted").request(t, s, account("resend"))
	r.URL.Path, r.Method = "/domains", http.MethodGet
	if res, body := send(t, r); res.StatusCode != 401 || !strings.Contains(body, "restricted_api_key") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if _, _, err := exchange(t, s, nil); err != nil || s.Count("") != 1 {
		t.Error(err)
	}
}

// TestWebhookSetup creates a webhook where a provider has the same path for the list.
func TestWebhookSetup(t *testing.T) {
	for name, at := range map[string][2]string{"postmark": {"/webhooks", `"Url": %q`},
		"resend":    {"/webhooks", `"endpoint": %q, "events": ["email.delivered"]`},
		"brevo":     {"/v3/webhooks", `"url": %q`},
		"mailjet":   {"/v3/REST/eventcallbackurl", `"Url": %q`},
		"sparkpost": {"/api/v1/webhooks", `"target": %q, "events": ["delivery"]`}} {
		s := start(t, name)
		f := load(t, name+"/accepted")
		f.Request.Path = at[0]
		f.Request.Body = json.RawMessage("{" + fmt.Sprintf(at[1], "https://hook.example") + "}")
		if res, body := send(t, f.request(t, s, account(name))); res.StatusCode > 201 {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
		f.Request.Method, f.Request.Body = http.MethodGet, nil
		if _, body := send(t, f.request(t, s, account(name))); !strings.Contains(body, "https://hook.example") {
			t.Errorf("%s lists %s", name, body)
		}
	}
}

// TestJoin reads a joined message with another library.
func TestJoin(t *testing.T) {
	m := content{from: "Büro <shop@example.com>", to: []string{"ann@example.net", "Bob <bob@example.org>"},
		subject: "Grüße aus Köln", text: "Hallo\n", html: "<img src=cid:logo>",
		headers: [][2]string{{"X-A", "ü"}}, inline: []file{{"image/png", "logo.png", "logo", []byte("png")}},
		attached: []file{{"application/pdf", "Angebot für Jürgen.pdf", "", bytes.Repeat([]byte{0, 255}, 100)}}}
	r, err := gomail.CreateReader(bytes.NewReader(m.join("1", noon)))
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := r.Header.Subject()
	from, _ := r.Header.AddressList("From")
	to, _ := r.Header.AddressList("To")
	x, _ := r.Header.Text("X-A")
	if subject != m.subject || from[0].Name != "Büro" || len(to) != 2 || x != "ü" || !r.Header.Has("Date") {
		t.Error(subject, from, to, x)
	}
	var parts []string
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(p.Body)
		name, id := "", ""
		switch h := p.Header.(type) {
		case *gomail.AttachmentHeader:
			name, _ = h.Filename()
		case *gomail.InlineHeader:
			id = h.Get("Content-Id")
		}
		parts = append(parts, strings.Join([]string{name, id, string(body)}, "|"))
	}
	want := []string{"||Hallo\n", "||<img src=cid:logo>", "|<logo>|png", "Angebot für Jürgen.pdf||" +
		string(m.attached[0].data)}
	if !slices.Equal(parts, want) {
		t.Errorf("%q", parts)
	}
}

// TestNotify reads the webhooks of each provider with the product's reader.
func TestNotify(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(events)) {
		t.Run(name, func(t *testing.T) {
			s := start(t, name)
			if _, _, err := exchange(t, s, func(b string) string {
				return strings.Replace(b, "Message-ID:", `X-MC-Metadata: {\"postroom_id\": \"01JDXAMPLE0001\"}`+
					`\r\nMessage-ID:`, 1)
			}); err != nil || len(s.Delivered()) != 1 {
				t.Fatal(err)
			}
			reader := map[string]webhook.Name{"http": webhook.Generic}[name]
			if reader == "" {
				reader = webhook.Name(name)
			}
			got := make(chan webhook.Request, 1)
			hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got <- webhook.Request{Header: r.Header, Query: r.URL.Query(), Body: body,
					Addresses: []string{"http://" + r.Host + r.URL.String()}}
			}))
			defer hooks.Close()
			secret := DefaultSecret
			if name == "sendgrid" {
				secret = s.VerificationKey()
			} else if name == "mailjet" {
				secret = "shared secret of mailjet"
			}
			v, err := webhook.New(reader, webhook.Options{Secrets: []string{secret}, Bind: func(_ context.Context,
				_, digest string, _ time.Time) (string, error) {
				return digest, nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			for what, kind := range map[Event]webhook.Kind{Delivered: webhook.Delivered, Bounced: webhook.Bounced} {
				d := s.Delivered()[0]
				status, err := s.Notify(t.Context(), hooks.URL+"/?token="+url.QueryEscape(secret), what, d)
				if err != nil || status != 200 {
					t.Fatal(status, err)
				}
				r := <-got
				if err := v.Verify(t.Context(), r, noon); err != nil {
					t.Errorf("%s: %v", what, err)
				}
				batch, err := webhook.Read(reader, r)
				if err != nil || len(batch.Events) != 1 {
					t.Fatal(err, batch)
				}
				e := batch.Events[0]
				if e.Kind != kind || e.Recipient != d.To || e.Metadata["postroom_id"] != "01JDXAMPLE0001" &&
					e.Metadata["CustomID"] != "01JDXAMPLE0001" || what == Bounced && e.Bounce != webhook.Hard {
					t.Errorf("%s: %+v", what, e)
				}
			}
		})
	}
}

func TestConcurrentRequests(t *testing.T) {
	s := start(t, "postmark")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r := load(t, "postmark/accepted").request(t, s, account("postmark"))
			if res, err := http.DefaultTransport.RoundTrip(r); err != nil || res.Body.Close() != nil {
				t.Error(err)
			}
		})
	}
	if err := s.Wait(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if s.Count("ann@example.net") != 50 || len(s.Requests()) != 50 {
		t.Error(s.Count(""), len(s.Requests()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if s.Wait(ctx, 51) == nil {
		t.Error("51 deliveries")
	}
}
