package oidc

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testoidc"
	"github.com/postroom/postroom/server/people"
)

// redirect is where browsers come back to; nothing listens there.
const redirect = "http://postroom.test/login/oidc/callback"

var (
	ada = testoidc.User{ID: "1", Name: "ada", Email: "ada@example.com", Verified: true,
		Groups: []string{"staff", "mail-admins"}}
	bob = testoidc.User{ID: "2", Name: "bob", Email: "ada@example.com"} // says that he is ada
)

func setup(t *testing.T, change ...func(*Options)) (*testoidc.Server, *Issuer) {
	t.Helper()
	t.Parallel()
	s := testoidc.New(t, redirect, ada, bob)
	o := Options{Issuer: s.URL, ClientID: testoidc.ClientID, ClientSecret: testoidc.ClientSecret,
		Redirect: redirect, Scopes: []string{"email", "profile"}, RoleClaim: "groups", Client: http.DefaultClient,
		Roles: map[api.Role][]string{api.RoleViewer: {"staff"}, api.RoleAdmin: {"root", "mail-admins"}}}
	for _, c := range change {
		c(&o)
	}
	i, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, i
}

func begin(t *testing.T, i *Issuer) (to, secret string) {
	t.Helper()
	to, secret, err := i.Begin(t.Context())
	if err != nil || len(secret) != 43 {
		t.Fatal(secret, err)
	}
	return to, secret
}

func TestALoginTellsWhoItIs(t *testing.T) {
	s, i := setup(t)
	to, secret := begin(t, i)
	for _, want := range []string{"code_challenge_method=S256", "scope=openid+email+profile", "nonce="} {
		if !strings.Contains(to, want) {
			t.Errorf("%s lacks %s", to, want)
		}
	}
	if strings.Contains(to, secret) || strings.Contains(to, derive(secret, "verifier")) {
		t.Error("the URL has a secret of the login:", to)
	}
	got, err := i.Finish(t.Context(), secret, s.LogIn(t, to, "ada", testoidc.Password).Query())
	want := people.External{Identity: api.Identity{Issuer: s.URL, Subject: "1"}, Name: "ada@example.com",
		Role: api.RoleAdmin}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestAnUnverifiedAddressIsNobody: at many issuers people may write any address into their profile.
func TestAnUnverifiedAddressIsNobody(t *testing.T) {
	s, i := setup(t)
	to, secret := begin(t, i)
	back := s.LogIn(t, to, "bob", testoidc.Password)
	if got, err := i.Finish(t.Context(), secret, back.Query()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnotherClaimIsTheName(t *testing.T) {
	s, i := setup(t, func(o *Options) { o.NameClaim, o.Roles = "preferred_username", nil })
	to, secret := begin(t, i)
	got, err := i.Finish(t.Context(), secret, s.LogIn(t, to, "bob", testoidc.Password).Query())
	if err != nil || got.Name != "bob" || got.Identity.Subject != "2" || got.Role != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestWithoutARoleNobodyIsAdmitted: if the issuer gives the roles.
func TestWithoutARoleNobodyIsAdmitted(t *testing.T) {
	s, i := setup(t, func(o *Options) { o.NameClaim = "preferred_username" })
	to, secret := begin(t, i)
	got, err := i.Finish(t.Context(), secret, s.LogIn(t, to, "bob", testoidc.Password).Query())
	if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "groups") {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestOnlyTheBrowserThatBeganFinishes: not with a login that somebody else began, nor a second time.
func TestOnlyTheBrowserThatBeganFinishes(t *testing.T) {
	s, i := setup(t)
	to, _ := begin(t, i)
	_, theirs := begin(t, i)
	back := s.LogIn(t, to, "ada", testoidc.Password).Query()
	refused := func(what, secret string, q url.Values) {
		t.Helper()
		if got, err := i.Finish(t.Context(), secret, q); !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	refused("no cookie", "", back)
	refused("the cookie of another browser", theirs, back)
	forged := url.Values{"code": back["code"], "state": {derive(theirs, "state")}}
	refused("a stolen code in another browser", theirs, forged)
	// the issuer ends a code that came with a wrong verifier
	to, mine := begin(t, i)
	back = s.LogIn(t, to, "ada", testoidc.Password).Query()
	refused("no code", mine, url.Values{"state": back["state"]})
	if _, err := i.Finish(t.Context(), mine, back); err != nil {
		t.Fatal(err)
	}
	refused("the code a second time", mine, back)
}

func TestTheIssuerRefuses(t *testing.T) {
	s, i := setup(t, func(o *Options) { o.ClientSecret = "an old secret" })
	to, secret := begin(t, i)
	back := s.LogIn(t, to, "ada", testoidc.Password).Query()
	_, err := i.Finish(t.Context(), secret, back)
	if !fault.Is(err, fault.Unauthorized) || !strings.Contains(err.Error(), "invalid_client") ||
		strings.Contains(err.Error(), back.Get("code")) {
		t.Error("a wrong client secret:", err)
	}
	denied := url.Values{"state": back["state"], "error": {"access_denied"},
		"error_description": {"not\r\nyou " + strings.Repeat("x", 1000)}}
	_, err = i.Finish(t.Context(), secret, denied)
	if !fault.Is(err, fault.Unauthorized) || !strings.Contains(err.Error(), "access_denied not you xxx") ||
		len(err.Error()) > 400 {
		t.Error("a refusal:", err)
	}
}

func TestAnExpiredTokenTellsNothing(t *testing.T) {
	now := time.Now()
	s, i := setup(t, func(o *Options) { o.Now = func() time.Time { return now } })
	to, secret := begin(t, i)
	back := s.LogIn(t, to, "ada", testoidc.Password).Query()
	now = now.Add(2 * time.Hour)
	if got, err := i.Finish(t.Context(), secret, back); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestATokenWithAWrongSignatureIsRefused: the issuer answered, so it is not away.
func TestATokenWithAWrongSignatureIsRefused(t *testing.T) {
	s, i := setup(t, func(o *Options) {
		o.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil || r.Method != http.MethodPost {
				return resp, err
			}
			defer func() { _ = resp.Body.Close() }()
			var token map[string]any
			if err := json.NewDecoder(resp.Body).Decode(&token); err != nil {
				return nil, err
			}
			parts := strings.Split(token["id_token"].(string), ".")
			parts[2] = base64.RawURLEncoding.EncodeToString(make([]byte, 256))
			token["id_token"] = strings.Join(parts, ".")
			text, err := json.Marshal(token)
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			return resp, err
		})}
	})
	to, secret := begin(t, i)
	_, err := i.Finish(t.Context(), secret, s.LogIn(t, to, "ada", testoidc.Password).Query())
	if !fault.Is(err, fault.Unauthorized) || fault.CodeOf(err) != "LoginRefused" {
		t.Error(err)
	}
}

// TestAnIssuerThatIsAway: logins fail with a reason, and work again when it is back. What it said of itself
// before is used while it is away.
func TestAnIssuerThatIsAway(t *testing.T) {
	now := time.Now()
	away := true
	s, i := setup(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Client = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if away {
				return nil, http.ErrServerClosed
			}
			return http.DefaultTransport.RoundTrip(r)
		})}
	})
	if _, _, err := i.Begin(t.Context()); !fault.Is(err, fault.Unavailable) ||
		!strings.Contains(err.Error(), s.URL) {
		t.Error(err)
	}
	away = false
	begin(t, i)
	away, now = true, now.Add(known+time.Second)
	_, secret := begin(t, i)
	_, err := i.Finish(t.Context(), secret, url.Values{"state": {derive(secret, "state")}, "code": {"c"}})
	if !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func TestWhatAnIssuerNeeds(t *testing.T) {
	full := Options{Issuer: "https://issuer.test", ClientID: "c", Redirect: redirect, Client: http.DefaultClient}
	for name, without := range map[string]func(*Options){
		"the issuer": func(o *Options) { o.Issuer = "" }, "the client": func(o *Options) { o.ClientID = "" },
		"the redirect": func(o *Options) { o.Redirect = "" }, "HTTP": func(o *Options) { o.Client = nil },
	} {
		o := full
		without(&o)
		if _, err := New(o); err == nil {
			t.Errorf("it works without %s", name)
		}
	}
}
