package apisend_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

const text = "From: Shop <shop@example.com>\r\nTo: Ann <ann@example.net>\r\nSubject: Your order\r\n" +
	"Message-ID: <1@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n" +
	"Content-Transfer-Encoding: 7bit\r\n\r\nHello Ann.\r\n"

// bench is a fake provider and a sender.
type bench struct {
	*testapi.Server
	sender *apisend.Sender
	target apisend.Target
	log    *bytes.Buffer
	waits  []time.Duration // before repeats
	once   bool            // nothing is repeated
}

// setup starts a fake provider and a sender whose waits end immediately.
func setup(t *testing.T, kind api.GatewayType, o testapi.Options) *bench {
	t.Helper()
	b := &bench{Server: testapi.Start(t, string(kind), o), log: &bytes.Buffer{}}
	var err error
	b.sender, err = apisend.New(apisend.Options{
		Timeout: 5 * time.Second, Logger: slog.New(slog.NewTextHandler(b.log, nil)),
		Wait: func(ctx context.Context, d time.Duration) bool {
			b.waits = append(b.waits, d)
			return ctx.Err() == nil && !b.once
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.sender.Close)
	b.target = target(kind, b.URL)
	return b
}

// target is the account that the fakes know.
func target(kind api.GatewayType, url string) apisend.Target {
	t := apisend.Target{Type: kind, ID: "gw", URL: url, Key: "key", Secret: testapi.DefaultSecret}
	if kind == api.GatewayHTTP {
		t.URL += "/mail"
	}
	if kind == api.GatewaySES {
		t.Region = "eu-west-1"
	}
	if kind == api.GatewayMailgun {
		t.Domain = "mg.example.com"
	}
	return t
}

// mail is a message that counts its marks.
func mail(to ...string) smtpsend.Message {
	return smtpsend.Message{From: "shop@example.com", To: to, Body: smtpsend.Bytes(text),
		Labels: smtpsend.Labels{
			ID: "01JDXAMPLE0001", Account: "shop", Proof: func() string { return "01JDXAMPLE0001" },
		}}
}

func (b *bench) send(t *testing.T, m smtpsend.Message) smtpsend.Result {
	t.Helper()
	r, err := b.sender.Send(t.Context(), b.target, m)
	if len(r.Recipients) != len(m.To) {
		t.Fatalf("%d results for %d recipients", len(r.Recipients), len(m.To))
	}
	for i, one := range r.Recipients {
		if one.Address != m.To[i] {
			t.Errorf("result %d is of %s, want %s", i, one.Address, m.To[i])
		}
	}
	if all := slices.IndexFunc(r.Recipients, func(one smtpsend.RecipientResult) bool {
		return one.Err == nil
	}); (all >= 0) != (err == nil) {
		t.Errorf("error %v with %+v", err, r.Recipients)
	}
	if strings.Contains(b.log.String(), b.target.Key) || strings.Contains(fmt.Sprint(err), b.target.Secret) {
		t.Errorf("a secret got out: %v, %s", err, b.log)
	}
	return r
}

// says is a result in short: sent, doubt, or the verdict and scope.
func says(r smtpsend.RecipientResult) string {
	switch e := r.Err; {
	case e == nil:
		return "sent"
	case e.InDoubt:
		return "doubt"
	default:
		return string(e.Verdict) + " " + string(e.Scope)
	}
}

// TestEveryFailure injects each failure at each phase. What is in doubt is what the provider may have taken
// (RFC 1047); it is right if the fake took it only then.
func TestEveryFailure(t *testing.T) {
	t.Parallel()
	html := map[string]string{"Content-Type": "text/html"}
	for _, kind := range apisend.Types() {
		for name, row := range map[string]struct {
			fault     testapi.Fault
			want      string
			elsewhere bool
		}{
			// in doubt if it was written in the meantime
			"refused":             {testapi.Fault{At: testapi.Accept}, "", true},
			"cut after headers":   {testapi.Fault{At: testapi.Headers}, "", true},
			"cut after the body":  {testapi.Fault{At: testapi.Read, Taken: true}, "doubt", false},
			"lost after the body": {testapi.Fault{At: testapi.Read}, "doubt", false},
			"cut in the answer":   {testapi.Fault{At: testapi.Answer, Taken: true}, "doubt", false},
			"a page of a proxy": {testapi.Fault{Status: 200, Header: html, Body: "<html>Welcome</html>"},
				"doubt", false},
			"502 of a proxy": {testapi.Fault{Status: 502, Header: html, Body: "<html>Bad Gateway</html>"},
				"doubt", false},
			"503": {testapi.Fault{Status: 503, Header: html, Body: "busy"}, "soft connection", true},
			"a redirect": {testapi.Fault{Status: 302,
				Header: map[string]string{"Location": "https://example.com/"}}, "auth account", true},
			"a gigabyte": {testapi.Fault{Status: 200, Body: "{\"a\":\"aaaaaaaaa", Length: 1 << 30}, "doubt",
				false},
			"throttled":       {testapi.Fault{Say: testapi.Throttled}, "throttle account", true},
			"an expired key":  {testapi.Fault{Expire: true}, "auth account", true},
			"a null":          {testapi.Fault{Lie: testapi.Null, Taken: true}, "doubt", false},
			"packed, unasked": {testapi.Fault{Gzip: true, Taken: true}, "doubt", false},
		} {
			t.Run(string(kind)+"/"+name, func(t *testing.T) {
				t.Parallel()
				b := setup(t, kind, testapi.Options{})
				marks := 0
				m := mail("ann@example.net")
				b.once = true // the doubt stays
				m.BeforeDot = func(context.Context, []string) error { marks++; return nil }
				b.FailAlways(row.fault)
				r := b.send(t, m)
				got := says(r.Recipients[0])
				if row.want != "" && got != row.want && !alike(kind, row.fault, got) {
					t.Errorf("%s, want %s: %v", got, row.want, r.Recipients[0].Err)
				}
				e := r.Recipients[0].Err
				if e == nil {
					return
				}
				if e.Elsewhere() != row.elsewhere && got == row.want {
					t.Errorf("elsewhere %v: %v", e.Elsewhere(), e)
				}
				if b.Count("") > 0 && !e.InDoubt {
					t.Errorf("the provider took it, and the error is %v", e)
				}
				if e.InDoubt && marks == 0 {
					t.Error("in doubt without a mark")
				}
			})
		}
	}
}

// alike reports whether an adapter knows better than the general table what an answer means.
func alike(kind api.GatewayType, f testapi.Fault, got string) bool {
	switch kind {
	case api.GatewaySendGrid: // its answer to an accepted message is empty
		return f.Lie != nil && got == "sent"
	}
	return false
}

// TestNothingLeavesWithoutItsMark: the last byte is held back until the marks are set.
func TestNothingLeavesWithoutItsMark(t *testing.T) {
	t.Parallel()
	for _, kind := range apisend.Types() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			b := setup(t, kind, testapi.Options{})
			failed := errors.New("the mark was lost")
			for name, change := range map[string]func(*smtpsend.Message){
				"BeforeDot": func(m *smtpsend.Message) {
					m.BeforeDot = func(_ context.Context, to []string) error {
						if !slices.Equal(to, m.To) {
							t.Errorf("marked %v", to)
						}
						return failed
					}
				},
				"AtDot": func(m *smtpsend.Message) { m.AtDot = func() error { return failed } },
			} {
				m := mail("ann@example.net")
				change(&m)
				r, err := b.sender.Send(t.Context(), b.target, m)
				if !errors.Is(err, smtpsend.ErrAborted) || !errors.Is(err, failed) || r.Recipients[0].Err.InDoubt {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, r := range b.Requests() {
				if r.Complete {
					t.Errorf("request %d was complete", r.Number)
				}
			}
			if n := b.Count(""); n != 0 {
				t.Errorf("%d delivered", n)
			}
		})
	}
}

// TestADeadConnectionIsReplaced: a connection that the provider closed while it was idle fails no message.
func TestADeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t, api.GatewayHTTP, testapi.Options{})
	for i := range 3 {
		m := mail("ann@example.net")
		m.Labels.ID = fmt.Sprint(i)
		if r := b.send(t, m); r.Recipients[0].Err != nil {
			t.Fatal(r.Recipients[0].Err)
		}
		b.CloseConnections()
	}
	if n := b.Count(""); n != 3 {
		t.Errorf("%d delivered, want 3", n)
	}
}

// TestAKeyResolvesTheDoubt: the same request with the same key is answered with the first id, or delivered
// once.
func TestAKeyResolvesTheDoubt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		faults []testapi.Fault
		waits  int
	}{
		"taken":              {[]testapi.Fault{{At: testapi.Read, Taken: true}}, 1},
		"lost":               {[]testapi.Fault{{At: testapi.Read}}, 1},
		"lost, then refused": {[]testapi.Fault{{At: testapi.Read, Taken: true}, {At: testapi.Accept}}, 2},
		"three times": {[]testapi.Fault{{At: testapi.Read}, {At: testapi.Read, Taken: true},
			{At: testapi.Answer, Taken: true}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, api.GatewayHTTP, testapi.Options{})
			b.Fail(row.faults...)
			r := b.send(t, mail("ann@example.net"))
			if r.Recipients[0].Err != nil || b.Count("ann@example.net") != 1 {
				t.Errorf("%v, delivered %d times", r.Recipients[0].Err, b.Count("ann@example.net"))
			}
			if len(b.waits) != row.waits {
				t.Errorf("repeated after %v, want %d times", b.waits, row.waits)
			}
			requests := b.Requests()
			first := requests[0]
			for _, other := range requests {
				if other.Complete && (!bytes.Equal(other.Body, first.Body) ||
					other.Header.Get("Idempotency-Key") != first.Header.Get("Idempotency-Key")) {
					t.Error("the repeat has other bytes or another key")
				}
			}
		})
	}
}

// TestMixedAnswers: each recipient has its own result.
func TestMixedAnswers(t *testing.T) {
	t.Parallel()
	b := setup(t, api.GatewayHTTP, testapi.Options{Inactive: map[string]string{"gone@example.net": "unknown"}})
	r := b.send(t, mail("ann@example.net", "gone@example.net"))
	if says(r.Recipients[0]) != "sent" || r.Recipients[0].ProviderID == "" || r.Recipients[0].Response == "" {
		t.Errorf("%+v", r.Recipients[0])
	}
	if e := r.Recipients[1].Err; e == nil || e.Verdict != smtpsend.Hard || !e.Suppress || e.Code != 550 {
		t.Errorf("%+v", e)
	}
}

// TestLyingAnswers: nobody gets a result that the answer does not have for certain.
func TestLyingAnswers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		lie  func(any) any
		want []string
	}{
		"a foreign recipient":  {testapi.Foreign, []string{"sent", "sent"}},
		"a missing one":        {testapi.Missing, []string{"sent", "doubt"}},
		"one twice":            {testapi.Twice, []string{"sent", "sent"}},
		"numbers for words":    {testapi.WrongType, []string{"doubt", "doubt"}},
		"null":                 {testapi.Null, []string{"doubt", "doubt"}},
		"ids beyond a float64": {testapi.LargeID, []string{"sent", "sent"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, api.GatewayHTTP, testapi.Options{})
			b.FailAlways(testapi.Fault{Lie: row.lie, Taken: true})
			r := b.send(t, mail("ann@example.net", "bob@example.net"))
			for i, want := range row.want {
				if got := says(r.Recipients[i]); got != want {
					t.Errorf("%s: %s, want %s", r.Recipients[i].Address, got, want)
				}
			}
		})
	}
}

// TestRetryAfter: seconds, dates and nonsense (RFC 9110 section 10.2.3), at most a day.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]time.Duration{
		"7": 7 * time.Second, time.Now().Add(90 * time.Second).UTC().Format(http.TimeFormat): 90 * time.Second,
		"999999999": 24 * time.Hour, "soon": 0, "-5": 0, "": 0,
	} {
		b := setup(t, api.GatewayHTTP, testapi.Options{})
		b.Fail(testapi.Fault{Status: 429, Header: map[string]string{"Retry-After": header}})
		r := b.send(t, mail("ann@example.net"))
		e := r.Recipients[0].Err
		if e == nil || e.Verdict != smtpsend.Throttle || (e.RetryAfter-want).Abs() > 30*time.Second {
			t.Errorf("%q: %v, want to wait %s", header, e, want)
		}
	}
}

// TestTurns: no more requests are under way than the target may have, and bulk mail leaves some to others.
func TestTurns(t *testing.T) {
	t.Parallel()
	b := setup(t, api.GatewayHTTP, testapi.Options{})
	b.target.Connections = 2
	hold := make(chan struct{})
	b.FailAlways(testapi.Fault{At: testapi.Headers, Wait: hold})
	var group sync.WaitGroup
	for i := range 2 {
		group.Go(func() {
			m := mail("ann@example.net")
			m.Labels.ID, m.Bulk = fmt.Sprint(i), i == 1
			if r := b.send(t, m); r.Recipients[0].Err != nil {
				t.Error(r.Recipients[0].Err)
			}
		})
	}
	for len(b.Requests()) < 2 {
		time.Sleep(time.Millisecond)
	}
	m := mail("late@example.net")
	m.Patience = time.Millisecond
	r := b.send(t, m)
	if e := r.Recipients[0].Err; e == nil || e.Verdict != smtpsend.Throttle ||
		e.Phase != smtpsend.PhaseConnect ||
		e.Code != 0 {
		t.Errorf("%v, want no turn", e)
	}
	close(hold)
	group.Wait()
}

// TestVerify: a good key, a bad key, and an unavailable server.
func TestVerify(t *testing.T) {
	t.Parallel()
	for _, kind := range apisend.Types() {
		b := setup(t, kind, testapi.Options{})
		if err := b.sender.Verify(t.Context(), b.target); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if n := len(b.Delivered()); n != 0 {
			t.Errorf("%s: the check delivered %d messages", kind, n)
		}
		wrong := b.target
		wrong.Key, wrong.Secret = "wrong", "whsec_d3JvbmcgYnV0IGxvbmcgZW5vdWdoIGZvciBhIGtleQ=="
		err, is := errors.AsType[*smtpsend.Error](b.sender.Verify(t.Context(), wrong))
		if !is || err.Verdict != smtpsend.Auth || err.Scope != smtpsend.ScopeAccount {
			t.Errorf("%s: a wrong key gives %v", kind, err)
		}
		b.FailAlways(testapi.Fault{At: testapi.Accept})
		err, is = errors.AsType[*smtpsend.Error](b.sender.Verify(t.Context(), b.target))
		if !is || err.Verdict != smtpsend.Soft || err.Code != 0 {
			t.Errorf("%s: a server that is away gives %v", kind, err)
		}
	}
}
