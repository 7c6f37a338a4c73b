package ui

import (
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
)

const password = "correct horse battery"

// twice is the form of a new password.
func twice(password string, more ...string) url.Values {
	v := url.Values{"newPassword": {password}, "newPassword2": {password}}
	for i := 0; i < len(more); i += 2 {
		v.Set(more[i], more[i+1])
	}
	return v
}

// person makes a person, and a browser in which they are logged in.
func (w *world) person(name string, role api.Role, accounts ...string) *browser {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.people.Create(ctx, api.PersonRequest{Person: name, Role: role, Accounts: accounts}, time.Now())
	w.must(err)
	link, _, err := w.people.NewLink(ctx, name, time.Now())
	w.must(err)
	_, err = w.people.Use(ctx, link, "", password, time.Now())
	w.must(err)
	b := w.browser()
	b.login(name, password, "")
	return b
}

// login logs in.
func (b *browser) login(name, password, code string) {
	b.t.Helper()
	p := b.post("/login", url.Values{"name": {name}, "password": {password}, "code": {code}})
	if p.status != http.StatusSeeOther {
		b.t.Fatalf("login answered %d: %s", p.status, p.body)
	}
}

// TestAViewerSeesTheStateWithoutTheForms: whether sending is paused is there to read; what changes something
// is neither linked nor answered.
func TestAViewerSeesTheStateWithoutTheForms(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.gateway("main")
	w.submit(api.SubmitRequest{})
	viewer, operator := w.person("vera", api.RoleViewer), w.person("olga", api.RoleOperator)
	forms := []string{"/accounts/new", "/campaigns/new", "/webhooks/new", "/gateways/new", "/templates/new",
		"/digests/categories/new", "/accounts/default/edit", "/cancel", "/cancel?account=default"}
	for _, path := range forms {
		if p := viewer.get(path); p.status != http.StatusForbidden || !strings.Contains(p.body,
			"You are a viewer") {
			t.Errorf("a viewer gets %d from %s", p.status, path)
		}
		if p := operator.get(path); p.status != http.StatusOK {
			t.Errorf("an operator gets %d from %s", p.status, path)
		}
	}
	for _, path := range []string{"/accounts", "/campaigns", "/webhooks", "/gateways", "/templates",
		"/digests/categories",
		"/accounts/default", "/outbox", "/outbox?state=failed", "/gateways/main"} {
		p := viewer.get(path)
		for _, link := range regexp.MustCompile(`href="([^"?]*)`).FindAllStringSubmatch(p.body, -1) {
			if strings.HasSuffix(link[1], "/new") || strings.HasSuffix(link[1], "/edit") || link[1] == "/cancel" {
				t.Errorf("a viewer is led from %s to %s", path, link[1])
			}
		}
	}
	for queue, at := range map[string]string{"submit": "/outbox", "notify": "/webhooks", "digests": "/digests"} {
		operator.submitForm("/queues/"+queue+"/pause", nil)
		forms := regexp.MustCompile(`(?s)<form method="post".*?</form>`)
		shown := forms.ReplaceAllString(viewer.get(at).body, "") // the style hides the forms of a viewer
		if !regexp.MustCompile(`class="dot off">[^<]*paused<`).MatchString(shown) {
			t.Errorf("%s does not say that the queue %s is paused", at, queue)
		}
	}
}

// TestFirstMinute: the link of the first start makes an admin, who invites an operator, who sets a password
// and an app.
func TestFirstMinute(t *testing.T) {
	t.Parallel()
	w := setup(t)
	first, err := w.people.FirstLink(t.Context(), time.Now())
	w.must(err)
	b := w.browser()
	for range 2 { // a scanner looks first
		b.get("/link?t="+first).has(t, "Make the first admin", "12 characters or more")
	}
	p := b.post("/link", twice("short", "t", first, "name", "Root"))
	p.has(t, "password must have 12 characters or more", `value="Root"`)
	p = b.post("/link", url.Values{"t": {first}, "name": {"Root"}, "newPassword": {password},
		"newPassword2": {password + "!"}})
	p.has(t, "password is not the same both times")
	b.submitForm("/link", twice(password, "t", first, "name", "Root")).has(t, "The password is set")
	if p := b.get("/link?t=" + first); p.status != http.StatusNotFound {
		t.Errorf("the link again: %d", p.status)
	}
	b.login("root", password, "")

	p = b.post("/people", url.Values{"person": {"Ann"}, "role": {"operator"}, "accounts": {""}})
	p.has(t, "Invitation for ann", "invited")
	link := regexp.MustCompile(`<pre id="link">([^<]+)</pre>`).FindStringSubmatch(p.text())
	if link == nil || !strings.HasPrefix(link[1], w.URL+"/link?t=") {
		t.Fatal(p.body)
	}
	ann := w.browser()
	path := strings.TrimPrefix(link[1], w.URL)
	ann.get(path).has(t, "Set the password of ann")
	ann.submitForm("/link", twice(password, "t", strings.TrimPrefix(path, "/link?t=")))
	ann.login("ann", password, "")
	ann.get("/outbox").has(t, "The outbox is empty", `href="/me"`)
	ann.get("/me").has(t, "Set up an app")
	ann.submitForm("/me/totp", url.Values{"password": {"wrong"}}).has(t, "password is not your password")
	p = ann.submitForm("/me/totp", url.Values{"password": {password}})
	p.has(t, `<svg class="qr"`)
	secret := regexp.MustCompile(`id="secret">([A-Z2-7]+)<`).FindStringSubmatch(p.body)[1]
	code, err := totp.GenerateCode(secret, time.Now())
	w.must(err)
	p = ann.post("/me/totp/confirm", url.Values{"code": {code}})
	p.has(t, "Your recovery codes")
	recovery := regexp.MustCompile(`(?m)[a-z2-7]{4}(-[a-z2-7]{4}){3}$`).FindString(p.body)
	ann.get("/me").lacks(t, recovery)

	other := w.browser()
	if p := other.post("/login", url.Values{"name": {"ann"}, "password": {password},
		"code": {code}}); p.status != http.StatusUnauthorized || p.header.Get("Set-Cookie") != "" {
		t.Errorf("a used code: %d", p.status)
	}
	other.login("ann", password, recovery)
	other.submitForm("/me/password", twice("another horse battery", "password", password)).has(t,
		"Your other sessions have ended")
	if p := ann.get("/me"); p.to() != "/login?next=%2Fme" {
		t.Errorf("the session of before the change: %d %s", p.status, p.to())
	}
	other.submitForm("/me/totp/remove", url.Values{"password": {"another horse battery"}}).has(t,
		"Set up an app")
	entries, err := w.audit.List(t.Context(), api.AuditQuery{Who: "ann", PageSize: 100})
	w.must(err)
	if e := entries.Entries; len(e) < 5 || e[0].Who.Kind != "person" || e[0].Object.ID != "ann" {
		t.Errorf("%+v", entries)
	}
	if p := b.get("/people"); p.status != http.StatusOK {
		t.Error(p.status)
	} else {
		p.has(t, "root", "ann", "active")
	}
}

// TestViewersOnlyLook at the pages and at the dashboard of the queues, but change their own password.
func TestViewersOnlyLook(t *testing.T) {
	t.Parallel()
	w := setup(t)
	id := w.later(api.SubmitRequest{Subject: "the mail"})
	b := w.person("vic", api.RoleViewer)
	b.get("/outbox").has(t, "the mail", `class="readonly"`)
	for _, path := range []string{"/messages/" + id, "/log", "/accounts", "/webhooks", "/status", "/rates",
		"/suppressions", "/lists", "/audience", "/templates", "/gateways", "/admin/queues/", "/me"} {
		if p := b.get(path); p.status != http.StatusOK {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	for _, path := range []string{"/settings", "/audit", "/people", "/sessions"} {
		if p := b.get(path); p.status != http.StatusForbidden {
			t.Errorf("%s: %d", path, p.status)
		}
	}
	for _, path := range []string{"/messages/" + id + "/cancel", "/queues/submit/pause", "/suppressions/add",
		"/people", "/cancel", "/admin/queues/api/queues/submit:pause"} {
		if p := b.post(path, url.Values{}); p.status != http.StatusForbidden {
			t.Errorf("POST %s: %d", path, p.status)
		}
	}
	if w.state(id) != api.Scheduled {
		t.Error("the message was changed")
	}
	b.get("/admin/queues/").has(t, `FLAG_READ_ONLY`)
	b.submitForm("/me/password", twice("another horse battery", "password", password)).has(t,
		"Your password is changed")
	operator := w.person("olga", api.RoleOperator)
	operator.get("/").lacks(t, `class="readonly"`)
	operator.submitForm("/messages/"+id+"/cancel", url.Values{}).has(t, "was cancelled")
}

func TestAdminsManagePeople(t *testing.T) {
	t.Parallel()
	w := setup(t)
	root, ann := w.person("root", api.RoleAdmin), w.person("ann", api.RoleOperator)
	root.post("/people", url.Values{"person": {"a b"}, "role": {"operator"}}).has(t,
		`id="person-wrong">must be 1 to 128`, `value="a b"`, `value="operator" selected`)
	root.post("/people/ann", url.Values{"role": {"admin"}, "accounts": {"shop"}, "disabled": {"on"}}).has(t,
		`id="accounts-wrong">must be empty`, `value="admin" selected`, `name="disabled" checked`,
		`value="shop"`)
	root.submitForm("/people/ann", url.Values{"role": {"viewer"}, "accounts": {"shop  b"}}).has(t,
		"The sessions of ann have ended", `value="shop b"`)
	if p := ann.get("/me"); p.status != http.StatusSeeOther {
		t.Errorf("ann after a change: %d", p.status)
	}
	root.submitForm("/people/ann", url.Values{"role": {"viewer"}, "disabled": {"on"}}).has(t, "disabled")
	if p := ann.post("/login", url.Values{"name": {"ann"}, "password": {password}}); p.status !=
		http.StatusUnauthorized {
		t.Errorf("disabled, and logs in: %d", p.status)
	}
	root.submitForm("/people/ann", url.Values{"role": {"viewer"}})
	root.submitForm("/people/ann/totp", nil).has(t, "ann needs no code any more")
	ann.login("ann", password, "")
	root.get("/sessions").has(t, "ann", "root", "this session", "Go-http-client")
	root.submitForm("/people/ann/sessions", nil).has(t, "The sessions of ann have ended")
	root.get("/sessions").lacks(t, "ann<")
	root.post("/people/ann/link", nil).has(t, `<pre id="link">`)
	root.submitForm("/people/ann/delete", nil).has(t, "ann is deleted")
	if p := root.get("/people/ann"); p.status != http.StatusNotFound {
		t.Errorf("deleted: %d", p.status)
	}
}

func TestSessionsAreEndedOnThePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	root, ann := w.person("root", api.RoleAdmin), w.person("ann", api.RoleViewer)
	known := map[string]bool{}
	session := func(of string) (id string) { // the one that is new
		sessions, err := w.access.Sessions(t.Context(), "", nil, time.Now())
		w.must(err)
		for _, s := range sessions {
			if s.Person == of && !known[s.ID] {
				id = s.ID
			}
			known[s.ID] = known[s.ID] || s.ID == id
		}
		return id
	}
	first, roots := session("ann"), session("root")
	second := w.browser()
	second.login("ann", password, "")
	newer := session("ann")
	end := func(b *browser, id, back string) page {
		return b.submitForm("/sessions/"+id+"/end", url.Values{"back": {back}})
	}
	end(ann, roots, "/me").has(t, "had ended already")
	end(ann, newer, "/me").has(t, "The session has ended")
	if p := second.get("/me"); p.status != http.StatusSeeOther {
		t.Errorf("the second session: %d", p.status)
	}
	end(root, first, "/sessions").has(t, "The session has ended")
	if p := ann.get("/me"); p.status != http.StatusSeeOther {
		t.Errorf("the first session: %d", p.status)
	}
	if p := w.operator().get("/me"); p.status != http.StatusForbidden {
		t.Errorf("a token is no person: %d", p.status)
	}
}

// TestCookiesOverTLSAreOfThisHostOnly: a cookie that was set without TLS, or by another host, opens nothing.
func TestCookiesOverTLSAreOfThisHostOnly(t *testing.T) {
	t.Parallel()
	w := setup(t).behind([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")})
	b := w.browser()
	b.client.Jar = nil
	b.header.Set("X-Forwarded-Proto", "https")
	p := b.post("/login", url.Values{"token": {adminToken}})
	set := p.header.Get("Set-Cookie")
	value, ok := strings.CutPrefix(set, "__Host-postroom_session=")
	if !ok || !strings.Contains(set, "; Secure") || !strings.Contains(set, "Path=/;") ||
		strings.Contains(set, "Domain") {
		t.Fatalf("%s", set)
	}
	value, _, _ = strings.Cut(value, ";")
	for name, want := range map[string]int{access.SessionCookie(true): http.StatusOK,
		access.SessionCookie(false): http.StatusSeeOther} {
		b.header.Set("Cookie", name+"="+value)
		if p := b.get("/"); p.status != want {
			t.Errorf("%s: %d", name, p.status)
		}
	}
}

// TestWhoIsBoundToAnAccountSeesNoOther on any page, by any address, and changes nothing of another.
func TestWhoIsBoundToAnAccountSeesNoOther(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, account := range []string{"mine", "theirs", "second"} {
		_, err := w.accounts.Create(t.Context(), api.Account{Account: account, Email: account + "@example.com",
			Webhooks: "https://hooks." + account + ".example/", SMTP: &api.SMTPServer{Host: account + ".relay.test",
				Port: 25}})
		w.must(err)
	}
	mine := w.later(api.SubmitRequest{Account: "mine", Subject: "mail of mine"})
	theirs := w.later(api.SubmitRequest{Account: "theirs", Subject: "mail of theirs"})
	for _, account := range []string{"mine", "theirs"} {
		_, err := w.barred.Put(t.Context(), "", []api.NewSuppression{{Email: account + "@barred.example",
			Reason: "manual", SuppressionScope: api.SuppressionScope{Account: account}}})
		w.must(err)
		_, err = w.stored.Create(t.Context(), account, api.TemplateRequest{Name: "template of " + account,
			TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
		w.must(err)
	}
	b := w.person("ann", api.RoleOperator, "mine", "second")
	for path, has := range map[string]string{"/outbox": "mail of mine", "/log": "mail of mine",
		"/accounts":     "mine.relay",
		"/suppressions": "mine@barred", "/suppressions?q=theirs@barred.example": "Not suppressed",
		"/templates": "template of mine", "/messages/" + mine: "mail of mine", "/cancel": "1 message",
		"/rates": "Rates", "/search": "Search", "/me": "ann"} {
		p := b.get(path)
		if p.status != http.StatusOK {
			t.Errorf("%s: %d", path, p.status)
		}
		p.has(t, has)
		p.lacks(t, "of theirs", "theirs.relay", "Pause sending", `href="/gateways"`, `href="/status"`)
		if !strings.Contains(path, "theirs") {
			p.lacks(t, "theirs")
		}
	}
	for path, want := range map[string]int{"/?account=theirs": 403, "/outbox?account=theirs": 403,
		"/log?account=theirs":   403,
		"/rates?account=theirs": 403, "/cancel?account=theirs": 403, "/replay?account=theirs": 403,
		"/templates?account=theirs": 403, "/messages/" + theirs: 404, "/messages/" + theirs + "/content": 404,
		"/webhooks/account:theirs": 404, "/webhooks": 403, "/gateways": 403, "/status": 403, "/settings": 403,
		"/people": 403, "/sessions": 403, "/audit": 403, "/tokens": 403, "/admin/queues/": 403,
		"/admin/queues/api/queues": 403, "/webhooks/settings": 404} {
		if p := b.get(path); p.status != want {
			t.Errorf("%s: %d, want %d", path, p.status, want)
		}
	}
	for path, want := range map[string]int{"/messages/" + theirs + "/cancel": 404,
		"/messages/" + theirs + "/retry": 404, "/messages/" + theirs + "/reschedule": 404,
		"/messages/" + theirs + "/replay": 404, "/queues/submit/pause": 403, "/webhooks/account:theirs/test": 404,
		"/replay": 403} {
		if p := b.post(path, url.Values{"account": {"theirs"}}); p.status != want {
			t.Errorf("POST %s: %d, want %d", path, p.status, want)
		}
	}
	b.submitForm("/suppressions/remove", url.Values{"email": {"theirs@barred.example"}, "account": {"theirs"},
		"reason": {"manual"}})
	if found, err := w.barred.Lookup(t.Context(), "", "theirs@barred.example"); err != nil ||
		len(found.Suppressions) != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	confirm := b.get("/cancel")
	before := regexp.MustCompile(`name="before" value="([^"]+)"`).FindStringSubmatch(confirm.text())[1]
	b.submitForm("/cancel", url.Values{"total": {"1"}, "before": {before}}).has(t, "1 message was cancelled")
	if w.state(mine) != "" || w.state(theirs) == "" {
		t.Error("the wrong message was cancelled")
	}
	w.ownAccountsOnly(b, theirs)
}

// ownAccountsOnly has a person of the accounts mine and second switch between them, and send a dead letter
// again.
func (w *world) ownAccountsOnly(b *browser, theirs string) {
	w.t.Helper()
	w.relay.replies["bad@example.net"] = "550 5.1.1 no"
	dead := w.submit(api.SubmitRequest{Account: "second", Subject: "dead",
		To: api.Addresses{{Address: "bad@example.net"}}})
	w.deliver(dead)
	if p := b.get("/messages/" + dead); p.status != http.StatusNotFound {
		w.t.Errorf("a message of the second account, before the switch: %d", p.status)
	}
	if p := b.post("/me/account", url.Values{"account": {"theirs"}}); p.status != http.StatusForbidden {
		w.t.Errorf("switched to theirs: %d", p.status)
	}
	b.submitForm("/me/account", url.Values{"account": {"second"}}).has(w.t, "You act for the account second now")
	b.get("/messages/"+dead).has(w.t, "Send again")
	if p := b.post("/messages/"+dead+"/replay", url.Values{"as": {"theirs"}}); p.status != http.StatusForbidden {
		w.t.Errorf("replayed as theirs: %d", p.status)
	}
	b.submitForm("/messages/"+dead+"/replay", url.Values{}).has(w.t, "The message is due again")
	if p := b.get("/messages/" + theirs); p.status != http.StatusNotFound {
		w.t.Errorf("theirs: %d", p.status)
	}
}
