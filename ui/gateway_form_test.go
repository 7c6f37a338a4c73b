package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

func TestGatewayIsMadeTriedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	p := b.get("/gateways/new")
	p.isSafe(t, "/gateways/new")
	p.eachFieldHasALabel(t, "/gateways/new")
	p.has(t, "POST /v1/gateway · postroom gateway add", "New gateway")

	f := url.Values{"gateway": {"main"}, "name": {evilText}, "host": {"mail.example.com"}, "port": {"587"},
		"user": {"shop"}, "pass": {"s3cret"}, "limits.perSecond": {"2.5"}, "verify": {"on"},
		"tls.starttls": {"required"}}
	w.login = api.VerifyResult{Code: "EAUTH", Error: "535 5.7.8 wrong"}
	p = b.post("/gateways", f)
	if p.status != http.StatusBadRequest {
		t.Fatalf("a relay that refuses the login: %d %s", p.status, p.body)
	}
	p.isSafe(t, "a refused gateway")
	p.has(t, `id="user-wrong">was tried: 535 5.7.8 wrong. check user and password`, `value="mail.example.com"`,
		evilText, `value="2.5"`)
	p.lacks(t, "s3cret")
	if len(w.tried) != 1 || w.tried[0].SMTP.Auth.Pass != "s3cret" || w.tried[0].SMTP.TLS.StartTLS != "required" {
		t.Errorf("tried %+v", w.tried)
	}
	w.login = api.VerifyResult{Success: true}
	b.submitForm("/gateways", f).has(t, "The gateway main was added", "none lists it", "2.5 a second")
	b.post("/gateways", f).has(t, "is already used by another gateway")

	p = b.get("/gateways/main")
	p.isSafe(t, "/gateways/main")
	p.eachFieldHasALabel(t, "/gateways/main")
	p.lacks(t, "s3cret")
	p.has(t, "PUT /v1/gateway/main · postroom gateway update main", "logs in as shop")

	f = url.Values{"name": {"The main one"}, "host": {"mail.example.com"}, "port": {"587"}, "user": {"shop"},
		"tls.starttls": {"required"}, "warmup.perDay": {"50"}, "limits.perDay": {"9000"}}
	b.submitForm("/gateways/main", f).has(t, "Changed.", "warming up, from 50 a day")
	relay, err := w.gateways.Resolve(t.Context(), "main")
	w.must(err)
	if relay.SMTP.Password != "s3cret" {
		t.Error("an empty field took the password away")
	}
	f.Set("host", "elsewhere.example.com")
	p = b.post("/gateways/main", f)
	p.has(t, `id="pass-wrong">must be entered again when host changes`, `value="elsewhere.example.com"`)

	p = b.post("/gateways/main/verify", nil)
	p.has(t, "Login: done", "The login works")
	w.login = api.VerifyResult{Code: "ETLS", Error: "certificate of <b>another</b>"}
	p = b.post("/gateways/main/verify", nil)
	p.has(t, "Connect: done", `TLS: <strong>failed`, "Login: not reached", "What to do:")
	p.isSafe(t, "a failed login")

	_, err = w.accounts.Create(t.Context(), api.Account{Account: "shop", Email: "a@example.com",
		Gateways: []api.Route{{Gateway: "main"}}})
	w.must(err)
	b.get("/gateways/main").has(t, "Take it off their lists first")
	b.submitForm("/gateways/main/delete", nil).has(t, `class="flash bad"`, "is used by account shop")
	w.must(w.accounts.Delete(t.Context(), "shop"))
	b.submitForm("/gateways/main/delete", nil).has(t, "The gateway main was deleted")
	if p := b.get("/gateways/main"); p.status != http.StatusNotFound {
		t.Errorf("a deleted gateway has a page: %d", p.status)
	}
}

func TestWrongNumbersOfAGatewayAreBesideTheirFields(t *testing.T) {
	t.Parallel()
	b := setup(t).operator()
	p := b.post("/gateways", url.Values{"gateway": {"?"}, "port": {"many"}, "limits.perDay": {"lots"}})
	if p.status != http.StatusBadRequest {
		t.Fatalf("status %d", p.status)
	}
	p.has(t, `id="port-wrong">must be a whole number`, `id="limits.perDay-wrong">must be a number`,
		`value="lots"`)
	p = b.post("/gateways", url.Values{"gateway": {"?"}, "oauth2.scope": {"mail"}, "proxy": {"x"}})
	p.has(t, `id="gateway-wrong">must start`, `id="host-wrong">is required`, `id="proxy-wrong">`,
		`id="oauth2.clientId-wrong">`)
}

func TestGatewaysAreForThoseWhoMayChangeThem(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway("main")
	viewer := w.person("vic", api.RoleViewer)
	p := viewer.get("/gateways/main")
	p.has(t, "relay.test:25")
	p.lacks(t, "<form method=\"post\" action=\"/gateways", "New gateway")
	bound := w.person("bea", api.RoleOperator, "default")
	for _, path := range []string{"/gateways", "/gateways/main", "/gateways/main/verify",
		"/gateways/main/delete"} {
		if p := viewer.post(path, nil); p.status != http.StatusForbidden {
			t.Errorf("a viewer posts to %s: %d", path, p.status)
		}
		if p := bound.post(path, nil); p.status != http.StatusForbidden {
			t.Errorf("who is bound to an account posts to %s: %d", path, p.status)
		}
	}
	if len(w.tried) != 0 {
		t.Errorf("tried %+v", w.tried)
	}
}

func TestPasswordsOfGatewaysAreNotInTheAuditLog(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.login.Success = true
	w.operator().submitForm("/gateways", url.Values{"gateway": {"main"}, "host": {"mail.example.com"},
		"port": {"587"}, "user": {"shop"}, "pass": {"s3cret"}})
	page, err := w.audit.List(t.Context(), api.AuditQuery{})
	w.must(err)
	text := fmt.Sprintf("%+v", page)
	if !strings.Contains(text, "POST /gateways") || strings.Contains(text, "s3cret") {
		t.Errorf("the audit log says %s", text)
	}
}
