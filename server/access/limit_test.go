package access

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

func TestRateLimit(t *testing.T) {
	b := setup(t)
	other := process(t, b.url, Options{})
	created := b.create(t, api.TokenRequest{Restrictions: &api.Restrictions{
		RateLimit: &api.RateLimit{MaxRequests: 2, TimeWindow: 3600}}})
	first, err := b.Authenticate(t.Context(), created.Token, here, start)
	if err != nil {
		t.Fatal(err)
	}
	if r := first.Rate; r == nil || r.Limit != 2 || r.Remaining != 1 || r.Reset != time.Hour {
		t.Errorf("after one request: %+v", r)
	}
	if g, err := other.Authenticate(t.Context(), created.Token, here, start); err != nil ||
		g.Rate.Remaining != 0 {
		t.Errorf("after two requests: %+v, %v", g, err)
	}
	_, err = b.Authenticate(t.Context(), created.Token, here, start)
	exceeded, ok := err.(*RateExceeded)
	if !ok || !fault.Is(err, fault.Limited) {
		t.Fatalf("the third request: %v", err)
	}
	if exceeded.Rate.Limit != 2 || exceeded.Rate.Remaining != 0 || exceeded.Rate.Reset <= 0 ||
		exceeded.Rate.Reset > time.Hour {
		t.Errorf("rate %+v", exceeded.Rate)
	}
	var recorded struct {
		Response struct{ Body api.Problem }
	}
	readJSON(t, "error-429-ratelimit.json", &recorded)
	if want := recorded.Response.Body.Message; err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
}

func TestRateLimitStartsOverWithTheNextWindow(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{Restrictions: &api.Restrictions{
		RateLimit: &api.RateLimit{MaxRequests: 1, TimeWindow: 1}}})
	limited := false
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		switch b.try(t, created.Token, here, start) {
		case fault.Limited:
			limited = true
		case "":
			if limited {
				return
			}
		}
	}
	t.Errorf("no new window (limited once: %v)", limited)
}

func TestGuessingIsSlowedDown(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{})
	for i := range 20 {
		if got := b.try(t, strings.Repeat("0", 64), here, start); got != fault.Unauthorized {
			t.Fatalf("guess %d: %s", i+1, got)
		}
	}
	_, err := b.Authenticate(t.Context(), "21st guess", here, start)
	if f, ok := err.(*fault.Error); !ok || f.Kind != fault.Limited || f.RetryAfter <= 0 ||
		f.RetryAfter > time.Minute {
		t.Fatalf("guess 21: %v", err)
	}
	for name, token := range map[string]string{"the bootstrap token": bootstrap,
		"a stored token": created.Token} {
		if got := b.try(t, token, here, start); got != "" {
			t.Errorf("%s is locked out by others at its address: %s", name, got)
		}
		if _, err := b.Login(t.Context(), token, Client{Addr: here}, start); err != nil {
			t.Errorf("%s can't log in: %v", name, err)
		}
	}
	if got := b.try(t, "22nd guess", here, start); got != fault.Limited {
		t.Errorf("a guess after right tokens: %q", got)
	}
	if got := b.try(t, "a guess", netip.MustParseAddr("192.0.2.8"), start); got != fault.Unauthorized {
		t.Errorf("the neighbour: %s", got)
	}
	other := process(t, b.url, Options{Token: bootstrap})
	if got := other.try(t, "a guess elsewhere", here, start); got != fault.Limited {
		t.Errorf("the first guess at another process: %q", got)
	}
	if got := b.blockedFor(tokensFrom(here), start.Add(time.Minute)); got != 0 {
		t.Errorf("still blocked after a minute, for %s", got)
	}
}

func TestGuessingFromOneIPv6NetworkCountsTogether(t *testing.T) {
	b := setup(t)
	b.maxFailures = 2
	for i, from := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::3"} {
		want := fault.Unauthorized
		if i == 2 {
			want = fault.Limited
		}
		if got := b.try(t, "guess", netip.MustParseAddr(from), start); got != want {
			t.Errorf("guess %d: %s, want %s", i+1, got, want)
		}
	}
	if got := b.try(t, "guess", netip.MustParseAddr("2001:db8:0:1::1"), start); got != fault.Unauthorized {
		t.Errorf("another /64: %s", got)
	}
}
