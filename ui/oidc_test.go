package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testoidc"
	"github.com/postroom/postroom/server/people/oidc"
)

// signOn is a world whose persons log in at an issuer.
func signOn(t *testing.T) (*world, *testoidc.Server) {
	t.Helper()
	w := setup(t)
	redirect := w.URL + "/login/oidc/callback"
	s := testoidc.New(t, redirect,
		testoidc.User{ID: "1", Name: "ada", Email: "ada@example.com", Verified: true, Groups: []string{"ops"}},
		testoidc.User{ID: "2", Name: "bob", Email: "bob@example.com", Verified: true, Groups: []string{"cooks"}})
	issuer, err := oidc.New(oidc.Options{Issuer: s.URL, ClientID: testoidc.ClientID, Redirect: redirect,
		ClientSecret: testoidc.ClientSecret, Scopes: []string{"email"}, RoleClaim: "groups",
		Roles: map[api.Role][]string{api.RoleViewer: {"ops"}}, Client: http.DefaultClient})
	w.must(err)
	w.ui.opts.SignOn = &SignOn{Issuer: issuer, URL: s.URL, Name: "Example <b>"}
	return w, s
}

// TestLoginAtAnIssuer: from the button to the page that was asked for.
func TestLoginAtAnIssuer(t *testing.T) {
	t.Parallel()
	w, s := signOn(t)
	b := w.browser()
	login := b.get("/login?next=/log%3Fpage%3D2")
	login.isSafe(t, "the login page")
	login.has(t, "Sign in with Example <b>", `href="/login/oidc?next=%2flog%3fpage%3d2"`)
	begun := b.get("/login/oidc?next=%2flog%3fpage%3d2")
	if begun.status != http.StatusSeeOther || !strings.HasPrefix(begun.to(), s.URL) {
		t.Fatal(begun.status, begun.to())
	}
	back := s.LogIn(t, begun.to(), "ada", testoidc.Password)
	in := b.get(back.RequestURI())
	if in.status != http.StatusSeeOther || in.to() != "/log?page=2" {
		t.Fatal(in.status, in.to(), in.body)
	}
	if p := b.get("/log"); p.status != http.StatusOK {
		t.Errorf("the log: %d", p.status)
	}
	if p := b.post("/queues/bulk/pause", nil); p.status != http.StatusForbidden {
		t.Errorf("a viewer pauses a queue: %d", p.status)
	}
	e := w.entries()
	if last := e[len(e)-1]; last.Action != "login" || last.Who.Name != "ada@example.com" {
		t.Errorf("the audit log has %+v", last)
	}
	// the same answer of the issuer opens no second session, neither here nor elsewhere
	for name, other := range map[string]*browser{"the browser": b, "another": w.browser()} {
		if p := other.get(back.RequestURI()); p.status != http.StatusUnauthorized {
			t.Errorf("%s, again: %d %s", name, p.status, p.to())
		}
	}
}

// TestLoginsAtAnIssuerThatAreRefused: with a page that says why, and an entry in the audit log.
func TestLoginsAtAnIssuerThatAreRefused(t *testing.T) {
	t.Parallel()
	w, s := signOn(t)
	b := w.browser()
	back := s.LogIn(t, b.get("/login/oidc").to(), "bob", testoidc.Password)
	p := b.get(back.RequestURI())
	if p.status != http.StatusForbidden || !strings.Contains(p.text(), "gives bob@example.com no role") {
		t.Error(p.status, p.text())
	}
	begun, err := url.Parse(b.get("/login/oidc?next=//evil.test/").to())
	w.must(err)
	p = b.get("/login/oidc/callback?error=access_denied&error_description=%3Cscript%3E&state=" +
		begun.Query().Get("state"))
	p.isSafe(t, "a refusal")
	if p.status != http.StatusUnauthorized || !strings.Contains(p.text(), "the sign-in: access_denied") ||
		strings.Contains(p.body, "evil.test") {
		t.Error(p.status, p.text())
	}
	refused := 0
	for _, e := range w.entries() {
		if e.Action == "login" && e.Result == api.AuditRefused {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no refusal is in the audit log")
	}
	if n, err := w.ui.People.Count(t.Context()); err != nil || n != 0 {
		t.Errorf("%d persons, %v", n, err)
	}
	s.Close()
	if p := w.browser().get("/login"); p.status != http.StatusOK {
		t.Error("without the issuer there is no login page:", p.status)
	}
}

func TestWithoutAnIssuerThereIsNoSuchPage(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, path := range []string{"/login/oidc", "/login/oidc/callback?code=c&state=s"} {
		if p := w.browser().get(path); p.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, p.status)
		}
	}
}

// TestAPersonOfAnIssuerIsAdded by an admin, without a link for a password.
func TestAPersonOfAnIssuerIsAdded(t *testing.T) {
	t.Parallel()
	w, s := signOn(t)
	b := w.operator()
	b.get("/people").has(t, "signs in with Example <b>")
	p := b.submitForm("/people", url.Values{"person": {"ada@example.com"}, "role": {"operator"},
		"external": {"on"}})
	p.has(t, "signs in at "+s.URL)
	got, err := w.ui.People.Get(t.Context(), "ada@example.com")
	if err != nil || got.Identity == nil || got.Identity.Issuer != s.URL || got.Invited {
		t.Errorf("%+v, %v", got, err)
	}
}
