package access

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

func (b bundle) login(t *testing.T, token string) string {
	t.Helper()
	cookie, err := b.Login(t.Context(), token, Client{Addr: here}, start)
	if err != nil {
		t.Fatal(err)
	}
	return cookie
}

func TestSessionMayDoWhatItsTokenMay(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{Account: "a", Scopes: []api.Scope{api.ScopeOutbox}})
	byToken, err := b.Authenticate(t.Context(), created.Token, here, start)
	if err != nil {
		t.Fatal(err)
	}
	bySession, err := b.Session(t.Context(), b.login(t, created.Token), here, start)
	if err != nil {
		t.Fatal(err)
	}
	if len(bySession.Session) != shownHash || bySession.Actor("").Kind != "session" {
		t.Errorf("%+v", bySession)
	}
	bySession.Session, bySession.SessionHash = "", ""
	if diff := cmp.Diff(byToken, bySession); diff != "" {
		t.Error(diff)
	}
}

func TestSessionEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(t *testing.T, b bundle, cookie string, token api.TokenCreated) bundle
		at   time.Duration
	}{
		{name: "by logging out", end: func(t *testing.T, b bundle, cookie string, _ api.TokenCreated) bundle {
			if err := b.Logout(t.Context(), cookie); err != nil {
				t.Fatal(err)
			}
			return b
		}},
		{name: "with its token", end: func(t *testing.T, b bundle, _ string, token api.TokenCreated) bundle {
			if _, err := b.Delete(t.Context(), token.ID); err != nil {
				t.Fatal(err)
			}
			return b
		}},
		{name: "with its token, deleted by another process", at: time.Second, end: func(t *testing.T, b bundle,
			_ string, token api.TokenCreated) bundle {
			if _, err := process(t, b.url, Options{}).Delete(t.Context(), token.ID); err != nil {
				t.Fatal(err)
			}
			return b
		}},
		{name: "when its token expires", at: 24 * time.Hour, end: func(_ *testing.T, b bundle, _ string,
			_ api.TokenCreated) bundle {
			return b
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t)
			expires := start.Add(24 * time.Hour)
			created := b.create(t, api.TokenRequest{Expires: &expires})
			cookie := b.login(t, created.Token)
			if _, err := b.Session(t.Context(), cookie, here, start); err != nil {
				t.Fatal(err)
			}
			b = tt.end(t, b, cookie, created)
			if g, err := b.Session(t.Context(), cookie, here, start.Add(tt.at)); !fault.Is(err, fault.Unauthorized) {
				t.Errorf("%v, %v", g, err)
			}
		})
	}
}

func TestSessionOfTheBootstrapTokenEndsWhenThatChanges(t *testing.T) {
	b := setup(t)
	cookie := b.login(t, bootstrap)
	if g, err := process(t, b.url, Options{Token: bootstrap}).Session(t.Context(), cookie, here,
		start); err != nil || g.TokenID != BootstrapID {
		t.Errorf("at another process: %v, %v", g, err)
	}
	for name, o := range map[string]Options{"another token": {Token: "another"}, "no token": {}} {
		b.login(t, bootstrap)
		if _, err := process(t, b.url, o).Session(t.Context(), cookie, here, start); !fault.Is(err,
			fault.Unauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSessionLastsWhileItIsUsed(t *testing.T) {
	b := setup(t)
	cookie := b.login(t, bootstrap)
	hash, _ := secretHash(cookie)
	c := b.db.Client()
	for _, left := range []time.Duration{SessionTTL, time.Minute} {
		if err := c.PExpire(t.Context(), sessionKey(hash), left).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Session(t.Context(), cookie, here, start); err != nil {
			t.Fatal(err)
		}
		if got := c.PTTL(t.Context(), sessionKey(hash)).Val(); got < SessionTTL-time.Minute || got > SessionTTL {
			t.Errorf("%v left, want about %v", got, SessionTTL)
		}
	}
}

func TestCookiesThatAreNone(t *testing.T) {
	b := setup(t)
	created := b.create(t, api.TokenRequest{})
	for name, cookie := range map[string]string{
		"empty": "", "short": "ab", "unknown": strings.Repeat("0", 64), "a token": created.Token,
		"an id": created.ID, "a key": "session:x",
	} {
		if _, err := b.Session(t.Context(), cookie, here, start); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.Logout(t.Context(), cookie); err != nil {
			t.Errorf("logging %s out: %v", name, err)
		}
	}
	if got := b.try(t, b.login(t, created.Token), here, start); got != fault.Unauthorized {
		t.Errorf("a cookie used as a token: %q", got)
	}
	if _, err := b.Login(t.Context(), "wrong", Client{Addr: here}, start); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("logging in with a wrong token: %v", err)
	}
}
