package tracking

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/feedback"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox"
)

func TestAnOpenAndAClickAreTold(t *testing.T) {
	w := setup(t, Options{})
	w.Open(w.open(w.id), by(agentOfAnn))
	target, err := w.Click(w.click(w.id, "https://shop.test/a?b=c#d"), by(agentOfAnn))
	if err != nil || target != "https://shop.test/a?b=c#d" {
		t.Errorf("click leads to %q, %v", target, err)
	}
	told := event.Later{Source: "track", RemoteAddress: "192.0.2.0", UserAgent: agentOfAnn}
	clickTold := told
	clickTold.URL = "https://shop.test/a?b=c#d"
	want := []outbox.Fact{
		{Type: event.TrackOpen, Account: "shop", MessageID: w.id, Index: 0, At: w.clock, Details: told},
		{Type: event.TrackClick, Account: "shop", MessageID: w.id, Index: 1, At: w.clock, Details: clickTold},
	}
	got := w.all()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(outbox.Fact{}, "Key")); diff != "" {
		t.Error(diff)
	}
	for _, f := range got {
		if len(f.Key) > 200 || !strings.HasPrefix(f.Key, map[event.Type]string{event.TrackOpen: "open:",
			event.TrackClick: "click:"}[f.Type]+w.id) {
			t.Errorf("key %q", f.Key)
		}
	}
}

// TestBlockedLinksLeadNowhere, and neither do preview links. None is reported.
func TestBlockedLinksLeadNowhere(t *testing.T) {
	var list []string
	w := setup(t, Options{Blocked: func() []string { return list }})
	other := w.message(2 * time.Hour)
	for _, c := range []struct {
		list    []string
		id, url string
		want    error
	}{
		{nil, w.id, "https://evil.test/", nil},
		{[]string{"evil.test"}, w.id, "https://evil.test/x", ErrBlocked},
		{[]string{"Evil.test"}, w.id, "https://WWW.evil.TEST.:8443/x", ErrBlocked},
		{[]string{"evil.test"}, w.id, "https://notevil.test/", nil},
		{[]string{"evil.test"}, w.id, "https://shop.test/evil.test", nil},
		{[]string{"192.0.2.1"}, w.id, "http://192.0.2.1/", ErrBlocked},
		{[]string{"a.test", w.id}, w.id, "https://shop.test/1", ErrBlocked},
		{[]string{w.id}, other, "https://shop.test/2", nil},
	} {
		list = c.list
		told := len(w.all())
		target, err := w.Click(w.click(c.id, c.url), by(agentOfAnn))
		if !errors.Is(err, c.want) || (err == nil) != (target == c.url) {
			t.Errorf("%v: %s leads to %q, %v", c.list, c.url, target, err)
		}
		if n := len(w.all()) - told; (n == 0) != (c.want != nil) {
			t.Errorf("%v: %s: %d are told", c.list, c.url, n)
		}
	}
	list = nil
	preview := w.token(signedtoken.Preview, signedtoken.Token{MessageID: w.id})
	told := len(w.all())
	w.Open(preview, by(agentOfAnn))
	if target, err := w.Click(preview, by(agentOfAnn)); !errors.Is(err, ErrPreview) || target != "" {
		t.Errorf("a preview leads to %q, %v", target, err)
	}
	if len(w.all()) != told {
		t.Error("a preview is told")
	}
}

// TestForgedTokensSayNothing: they are not reported, and they lead nowhere.
func TestForgedTokensSayNothing(t *testing.T) {
	w := setup(t, Options{})
	open, click := w.open(w.id), w.click(w.id, "https://shop.test/")
	other, err := signedtoken.New([]signedtoken.Key{
		signedtoken.KeyOf([]byte(strings.Repeat("another secret ", 3)))})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Sign(signedtoken.Click, signedtoken.Token{Account: "shop", MessageID: w.id,
		URL: "https://evil.test/"})
	if err != nil {
		t.Fatal(err)
	}
	swapped := func(token, from, to string) string {
		raw, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), from, to, 1)))
	}
	rows := map[string]string{
		"empty": "", "no token": "hello", "a URL": "https://evil.test/", "cut": click[:len(click)-1],
		"longer":       click + "A",
		"with padding": click + "=", "an open": open, "another key": foreign,
		"another host of the same length": swapped(click, "shop.test", "evil.test"),
		"an unsubscribe": w.token(signedtoken.Unsubscribe, signedtoken.Token{Account: "shop", MessageID: w.id,
			Address: "a@x.test"}),
		"very long": strings.Repeat("A", 1<<20), "line break": click[:8] + "\r\n" + click[8:],
	}
	for i := range len(click) {
		c := byte('A')
		if click[i] == c {
			c = 'B'
		}
		rows["changed at "+string(rune('0'+i%10))+click[:i]] = click[:i] + string(c) + click[i+1:]
	}
	for name, token := range rows {
		if target, err := w.Click(token, by(agentOfAnn)); err == nil || target != "" {
			t.Errorf("%s: leads to %q", name, target)
		}
	}
	for name, token := range map[string]string{"a click": click, "empty": "", "cut": open[1:]} {
		w.Open(token, by(agentOfAnn))
		if w.hits.len() != 0 {
			t.Errorf("%s: counted as an open", name)
		}
	}
	if got := w.all(); len(got) != 0 {
		t.Errorf("told: %+v", got)
	}
}

// TestRedirectsLeadOnlyToWebPages, even where the token is ours: such ones are never made of links, and must
// not work if they were.
func TestRedirectsLeadOnlyToWebPages(t *testing.T) {
	w := setup(t, Options{})
	for _, url := range []string{
		"javascript:alert(1)", "data:text/html,x", "//evil.test/", "/local", "evil.test", "ftp://evil.test/",
		"https://", "https:///x", "https:evil.test",
		"https://bank.test@evil.test/", "https://bank.test:pw@evil.test/", "https://x.test/\r\nSet-Cookie: a=b",
		"https://x.test/\n", "https://x.test/ a",
		"https://x.test\\@evil.test/", "\\\\evil.test", "https://x.test/ü", "https://x.test/%zz",
		"\x00https://x.test/", " https://x.test/",
	} {
		if target, err := w.Click(w.click(w.id, url), by(agentOfAnn)); err == nil || target != "" {
			t.Errorf("%q leads to %q", url, target)
		}
	}
	if got := w.all(); len(got) != 0 {
		t.Errorf("told: %+v", got)
	}
}

func TestWhatIsNotCounted(t *testing.T) {
	for _, tt := range []struct {
		name  string
		visit func(*Visit)
		ago   time.Duration
		want  int
	}{
		{"a visit", func(*Visit) {}, time.Hour, 1},
		{"HEAD", func(v *Visit) { v.Method = http.MethodHead }, time.Hour, 0},
		{"prefetch", func(v *Visit) { v.Header.Set("Sec-Purpose", "prefetch") }, time.Hour, 0},
		{"prerender", func(v *Visit) { v.Header.Set("Sec-Purpose", "prefetch;prerender") }, time.Hour, 0},
		{"prefetch of old", func(v *Visit) { v.Header.Set("Purpose", "Prefetch") }, time.Hour, 0},
		{"Firefox's", func(v *Visit) { v.Header.Set("X-Moz", "prefetch") }, time.Hour, 0},
		{"a last-minute one", func(*Visit) {}, 24 * time.Hour, 1},
		{"too old", func(*Visit) {}, 24*time.Hour + time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := setup(t, Options{Expiry: 24 * time.Hour})
			v := by(agentOfAnn)
			tt.visit(&v)
			id := w.message(tt.ago)
			w.Open(w.open(id), v)
			if target, err := w.Click(w.click(id, "https://shop.test/"), v); err != nil || target !=
				"https://shop.test/" {
				t.Errorf("the link leads to %q, %v", target, err)
			}
			if got := w.all(); len(got) != 2*tt.want {
				t.Errorf("%d hits told: %+v", len(got), got)
			}
		})
	}
}

func TestAHitWithinTheSecondIsTheSame(t *testing.T) {
	w := setup(t, Options{})
	token := w.open(w.id)
	w.Open(token, by(agentOfAnn))
	w.Open(token, by(agentOfAnn))
	w.all()
	w.Open(token, by(agentOfAnn)) // passed on already: the same key again, which the message knows
	other := by(agentOfAnn)
	other.Remote = netip.MustParseAddr("192.0.2.78")
	w.Open(token, other)
	w.Open(token, by(agentOfAnn+" x"))
	w.clock = w.clock.Add(time.Second)
	w.Open(token, by(agentOfAnn))
	got := w.all()
	keys := map[string]int{}
	for _, f := range got {
		keys[f.Key]++
	}
	if len(got) != 5 || len(keys) != 4 || keys[got[0].Key] != 2 {
		t.Errorf("%d hits with keys %v", len(got), keys)
	}
	second := setup(t, Options{}) // another process
	second.Open(token, by(agentOfAnn))
	if f := second.all(); len(f) != 1 || f[0].Key != got[0].Key {
		t.Errorf("another process has key %v, not %q", f, got[0].Key)
	}
}

func TestWhatIsKeptOfAVisitor(t *testing.T) {
	v4, v6 := "203.0.113.77", "2001:db8:1:2:3:4:5:6"
	for _, tt := range []struct {
		name, how, remote, agent string
		header                   map[string]string
		address, kept            string
	}{
		{name: "masked IPv4", remote: v4, agent: "a", address: "203.0.113.0", kept: "a"},
		{name: "masked IPv6", remote: v6, agent: "a", address: "2001:db8:1::", kept: "a"},
		{name: "IPv4 in IPv6", remote: "::ffff:203.0.113.77", agent: "a", address: "203.0.113.0", kept: "a"},
		{name: "with a zone", how: feedback.AddressWhole, remote: "fe80::1%eth0", agent: "a", address: "fe80::1",
			kept: "a"},
		{name: "whole", how: feedback.AddressWhole, remote: v6, agent: "a", address: v6, kept: "a"},
		{name: "none", how: feedback.AddressNone, remote: v4, agent: "a", address: "", kept: "a"},
		{name: "unknown", remote: "", agent: "a", address: "", kept: "a"},
		{name: "global privacy control", how: feedback.AddressWhole, remote: v4, agent: "a",
			header: map[string]string{
				"Sec-GPC": "1"}},
		{name: "do not track", how: feedback.AddressWhole, remote: v4, agent: "a", header: map[string]string{
			"DNT": "1"}},
		{name: "track me", how: feedback.AddressWhole, remote: v4, agent: "a", header: map[string]string{
			"DNT": "0"},
			address: v4, kept: "a"},
		{name: "a proxy's address", how: feedback.AddressWhole, remote: v4, agent: "via ggpht.com GoogleImageProxy",
			address: "", kept: "via ggpht.com GoogleImageProxy"},
		{name: "long agent", remote: v4, agent: strings.Repeat("a", 199) + "ü" + "b", address: "203.0.113.0",
			kept: strings.Repeat("a", 199)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := setup(t, Options{Address: tt.how})
			v := by(tt.agent)
			v.Remote = netip.Addr{}
			if tt.remote != "" {
				v.Remote = netip.MustParseAddr(tt.remote)
			}
			for name, value := range tt.header {
				v.Header.Set(name, value)
			}
			w.Open(w.open(w.id), v)
			got := w.all()
			if len(got) != 1 || got[0].Details.RemoteAddress != tt.address || got[0].Details.UserAgent != tt.kept {
				t.Errorf("kept %+v; want %q, %q", got, tt.address, tt.kept)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := setup(t, Options{Registry: reg, MaxHits: 2})
	w.Open("x", by(agentOfAnn))
	w.Open(w.open(w.id), by(agentOfAnn))
	w.Open(w.open(w.id), by(agentOfAnn))
	w.Open(w.open(w.id), by("curl/8"))
	w.Open(w.open(w.id), by(agentOfAnn+" x"))
	w.all()
	for outcome, want := range map[string]float64{forged: 1, human: 1, bot: 1, repeated: 1, ignored: 0} {
		if got := testutil.ToFloat64(w.metrics.hits.WithLabelValues("open", outcome)); got != want {
			t.Errorf("%s: %v, want %v", outcome, got, want)
		}
	}
	if got := testutil.ToFloat64(w.metrics.dropped); got != 1 {
		t.Errorf("dropped %v", got)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if _, err := New(w.ring, w.inbox.Append, Options{Registry: reg}); err == nil {
		t.Error("two of one registry")
	}
}

func TestNewWantsItsParts(t *testing.T) {
	if _, err := New(nil, (&inbox{}).Append, Options{}); err == nil {
		t.Error("without stamps")
	}
	if _, err := New(stamps(t), nil, Options{}); err == nil {
		t.Error("without an inbox")
	}
}

func BenchmarkClick(b *testing.B) {
	ring := stamps(b)
	tr, err := New(ring, (&inbox{}).Append, Options{})
	if err != nil {
		b.Fatal(err)
	}
	token, err := ring.Sign(signedtoken.Click, signedtoken.Token{Account: "shop",
		MessageID: "01KAKY0000000000000000000A", URL: "https://shop.test/autumn?utm_source=mail"})
	if err != nil {
		b.Fatal(err)
	}
	visit := by(agentOfAnn)
	address := addressOfAnn.As4()
	b.ReportAllocs()
	for n := uint32(0); b.Loop(); n++ {
		address[1], address[2], address[3] = byte(n>>16), byte(n>>8), byte(n)
		visit.Remote = netip.AddrFrom4(address)
		if _, err := tr.Click(token, visit); err != nil {
			b.Fatal("refused")
		}
	}
}
