package e2e_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testoidc"
)

// TestSingleSignOn: the settings alone let the people of an issuer in, each with the role of its group.
func TestSingleSignOn(t *testing.T) {
	t.Parallel()
	issuer := testoidc.New(t, "https://mail.test/login/oidc/callback",
		testoidc.User{ID: "1", Name: "ada", Email: "ada@example.com", Verified: true,
			Groups: []string{"mail-admins"}},
		testoidc.User{ID: "2", Name: "bob", Email: "bob@example.com", Verified: true,
			Groups: []string{"cooks", "staff"}},
		testoidc.User{ID: "3", Name: "eve", Email: "ada@example.com"})
	a := apptest.Run(t, map[string]string{"serviceUrl": "https://mail.test", "oidc.issuer": issuer.URL,
		"oidc.clientId": testoidc.ClientID, "oidc.clientSecret": testoidc.ClientSecret, "oidc.name": "Example",
		"oidc.roles.admin": "root, mail-admins", "oidc.roles.viewer": "staff"})
	for name, want := range map[string]struct {
		status int // of a page for admins; 303: to the login
		role   api.Role
	}{"ada": {http.StatusOK, api.RoleAdmin}, "bob": {http.StatusForbidden, api.RoleViewer},
		"eve": {http.StatusSeeOther, ""}} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		c := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}}
		get := func(path string) (int, string, string) {
			res, err := c.Get(a.URL() + path)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			return res.StatusCode, res.Header.Get("Location"), string(body)
		}
		_, to, _ := get("/login/oidc")
		_, _, body := get(issuer.LogIn(t, to, name, testoidc.Password).RequestURI())
		if status, _, _ := get("/settings"); status != want.status {
			t.Errorf("%s: %d, want %d", name, status, want.status)
		}
		if want.role == "" && !strings.Contains(body, "verified the address ada@example.com") {
			t.Errorf("%s is not told why: %s", name, body)
		}
	}
	admin := api.NewClient(a.URL(), a.Token(), nil)
	page, err := api.ListPeople.Do(t.Context(), admin, api.PageQuery{})
	if err != nil || len(page.People) != 2 || page.People[0].Role != api.RoleAdmin ||
		page.People[1].Role != api.RoleViewer {
		t.Errorf("%+v, %v", page, err)
	}
}
