package ui

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestAccountsPageAsksForSenders covers the form that sends a mail to an address.
func TestAccountsPageAsksForSenders(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, id := range []string{"shop", "club"} {
		_, err := w.accounts.Create(t.Context(), api.Account{Account: id, Email: id + "@x.test",
			SMTP: &api.SMTPServer{Host: "relay.example", Port: 587}})
		w.must(err)
	}
	form := url.Values{"sender": {" ann@example.net "}}
	b := w.operator()
	b.get("/accounts/shop").has(t, `action="/accounts/shop/sender"`)
	b.submitForm("/accounts/shop/sender", form).has(t, "A mail to ann@example.net asks")
	bound := w.person("bob", api.RoleOperator, "club")
	bound.submitForm("/accounts/club/sender", form).has(t, "A mail to ann@example.net asks")
	viewer := w.person("vera", api.RoleViewer)
	viewer.get("/accounts/shop").lacks(t, "/accounts/shop/sender")
	for name, b := range map[string]*browser{"of another account": bound, "a viewer": viewer} {
		if p := b.post("/accounts/shop/sender", form); p.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, p.status)
		}
	}
	if want := []string{"shop ann@example.net", "club ann@example.net"}; !slices.Equal(w.asked, want) {
		t.Errorf("%v", w.asked)
	}
}
