package ui

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
)

func TestAccountIsMadeTriedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway("main")
	b := w.operator()
	p := b.get("/accounts/new")
	p.isSafe(t, "/accounts/new")
	p.eachFieldHasALabel(t, "/accounts/new")
	p.has(t, "POST /v1/account · postroom account add")
	key, err := dkim.Generate("ed25519", 0)
	w.must(err)

	f := url.Values{"account": {"shop"}, "name": {evilText}, "email": {"orders"},
		"gateways": {"main lane=bulk weight=x\nnone"}, "quota.perDay": {"many"}}
	p = b.post("/accounts", f)
	if p.status != http.StatusBadRequest {
		t.Fatalf("a wrong form answers %d", p.status)
	}
	p.isSafe(t, "a refused account")
	p.has(t, `"weight=x" must be lane=bulk`, `id="quota.perDay-wrong">must be a whole number`, `value="many"`)
	f.Set("quota.perDay", "100")
	f.Set("gateways", "main lane=bulk weight=3\nnone")
	b.post("/accounts", f).has(t, `id="email-wrong">`, `value="orders"`)
	f.Set("email", "orders@example.com")
	b.post("/accounts", f).has(t, `id="gateways-wrong">`, "main lane=bulk weight=3")
	f.Set("gateways", "main")
	for name, value := range map[string]string{"smtp.host": "mail.example.com", "smtp.port": "587",
		"smtp.auth.user": "shop", "smtp.auth.pass": "s3cret", "dkim.domain": "example.com", "dkim.selector": "s1",
		"dkim.privateKey": key, "trackOpens": "no", "retry": "1m, 5m", "quota.templates": "0"} {
		f.Set(name, value)
	}
	b.submitForm("/accounts", f).has(t, "The account shop was added", "mail.example.com:587", "s1._domainkey",
		"main", "of 100")
	b.post("/accounts", f).has(t, "is already used by another account")

	p = b.get("/accounts/shop/edit")
	p.isSafe(t, "/accounts/shop/edit")
	p.eachFieldHasALabel(t, "/accounts/shop/edit")
	p.lacks(t, "s3cret", "PRIVATE KEY")
	p.has(t, `value="1m, 5m"`, "PUT /v1/account/shop · postroom account update shop")
	f.Del("smtp.auth.pass")
	f.Del("dkim.privateKey")
	f.Del("quota.templates")
	f.Set("name", "The Shop")
	b.submitForm("/accounts/shop", f).has(t, "Changed.", "The Shop")
	got, err := w.accounts.Get(t.Context(), "shop")
	w.must(err)
	if got.SMTP.Auth.Pass == "" || got.DKIM.PrivateKey == "" || got.Quota.Templates != nil ||
		*got.Quota.PerDay != 100 || *got.TrackOpens || len(got.Retry) != 2 || got.Gateways[0].Gateway != "main" {
		t.Errorf("the account became %+v", got)
	}
	w.login.Success = true
	b.post("/accounts/shop/verify", nil).has(t, "Its own relay", "The login works")

	p = b.get("/accounts/shop")
	p.isSafe(t, "/accounts/shop")
	p.eachFieldHasALabel(t, "/accounts/shop")
	b.submitForm("/accounts/shop/delete", url.Values{"confirm": {"other"}}).has(t, `class="flash bad"`)
	b.submitForm("/accounts/shop/delete", url.Values{"confirm": {"shop"}}).has(t,
		"The account shop was deleted, and 0 messages were cancelled.")
	b.submitForm("/accounts/default/delete", url.Values{"confirm": {"default"}}).has(t,
		"comes from the configuration")
}

func TestAccountPagesAreForThoseWhoMayChangeThem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := w.accounts.Create(t.Context(), api.Account{Account: "shop", Email: "a@example.com",
		SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
	w.must(err)
	viewer, bound := w.person("vic", api.RoleViewer), w.person("bea", api.RoleOperator, "shop")
	viewer.get("/accounts/shop").lacks(t, "<form method=\"post\" action=\"/accounts", "/accounts/shop/edit")
	p := bound.get("/accounts/shop")
	p.has(t, "relay.test:25", `action="/accounts/shop/sender"`)
	p.lacks(t, "/accounts/shop/edit", `action="/accounts/shop/verify"`)
	if p := bound.get("/accounts/default"); p.status != http.StatusForbidden {
		t.Errorf("another account's page: %d", p.status)
	}
	for _, path := range []string{"/accounts", "/accounts/shop", "/accounts/shop/verify",
		"/accounts/shop/delete"} {
		for _, b := range []*browser{viewer, bound} {
			if p := b.post(path, url.Values{"confirm": {"shop"}}); p.status != http.StatusForbidden {
				t.Errorf("POST %s answers %d", path, p.status)
			}
		}
	}
	if p := bound.get("/accounts/new"); p.status != http.StatusForbidden {
		t.Errorf("who is bound sees the form: %d", p.status)
	}
}
