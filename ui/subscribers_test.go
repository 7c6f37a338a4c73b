package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// list makes a list of an account, without double opt-in.
func (w *world) list(account, id string) {
	w.t.Helper()
	_, err := w.audience.Lists.Create(w.t.Context(), "", api.List{ListID: id, Account: account,
		Name: "The " + id, OptIn: "single"})
	w.must(err)
}

// subscriber makes a subscriber who is on lists, and returns the path of the page.
func (w *world) subscriber(account, email string, lists ...string) string {
	w.t.Helper()
	req := api.SubscriberRequest{Account: account, Email: email}
	for _, id := range lists {
		req.Lists = append(req.Lists, api.SubscriptionRequest{ListID: id})
	}
	sub, _, err := w.audience.Create(w.t.Context(), "", req)
	w.must(err)
	return subscriberPath(sub.Account, sub.ID)
}

// account makes an account.
func (w *world) account(id string) {
	w.t.Helper()
	_, err := w.accounts.Create(w.t.Context(), api.Account{Account: id, Email: "sender@example.com",
		SMTP: &api.SMTPServer{Host: "relay.test", Port: 25}})
	w.must(err)
}

func TestListsAreAddedChangedAndDeleted(t *testing.T) {
	t.Parallel()
	w := setup(t)
	b := w.operator()
	b.get("/lists").has(t, "No lists yet", "Create a list")
	b.submitForm("/lists", url.Values{"name": {"<i>Weekly</i> news"}, "list": {"weekly"}, "optIn": {"double"},
		"public": {"on"}}).has(t, "<i>Weekly</i> news created.", "can subscribe", "default")
	b.submitForm("/lists", url.Values{"name": {"Another"}, "list": {"weekly"}}).has(t, `class="flash bad"`,
		`There is already a list "weekly"`)
	b.submitForm("/lists", url.Values{"name": {"No"}, "list": {"a b"}}).has(t, "must be a label of a host name")
	w.subscriber("default", "ann@example.com", "weekly")
	p := b.get("/lists")
	p.has(t, "1 list", `href="/lists/weekly"`, `href="/audience?account=default&list=weekly&state=pending">1<`)
	p.lacks(t, "<i>Weekly</i> news</a><b>")
	if strings.Contains(p.body, "<i>Weekly") {
		t.Error("the name is not escaped")
	}
	change := url.Values{"version": {"1"}, "name": {"News"}, "optIn": {"single"}, "pendingRetention": {"48h"},
		"welcome.subject": {"Welcome"}, "welcome.text": {"Hello {{subscriber.name}}"}}
	b.submitForm("/lists/weekly", change).has(t, "List saved.", "can’t see it", "48h", "Welcome",
		"Hello {{subscriber.name}}")
	b.submitForm("/lists/weekly", change).has(t, "is now at version 2, not 1")
	change.Set("version", "2")
	change.Set("pendingRetention", "soon")
	b.submitForm("/lists/weekly", change).has(t, "must be a duration")
	change.Del("version")
	b.submitForm("/lists/weekly", change).has(t, "version must be a number")
	b.submitForm("/lists/weekly/delete", nil).has(t, "List weekly deleted.", "No lists yet")
	b.submitForm("/lists/weekly/delete", nil).has(t, "was already deleted")
	if p := b.get("/lists/weekly"); p.status != http.StatusNotFound {
		t.Errorf("a deleted list: %d", p.status)
	}
	entries, err := w.audit.List(t.Context(), api.AuditQuery{Kind: "list", ID: "weekly", PageSize: 100})
	w.must(err)
	if len(entries.Entries) < 4 {
		t.Errorf("the audit log has %d entries", len(entries.Entries))
	}
}

func TestSubscriberIsFollowedThroughThePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	b := w.operator()
	b.get("/audience").has(t, "No subscribers yet.")
	p := b.post("/audience", url.Values{"account": {"default"}, "email": {"Ann@Example.com"},
		"name": {"<b>Ann</b>"}, "list": {"news"}, "source": {"fair"}, "words": {"Yes <i>please</i>"}})
	at := p.to()
	if p.status != http.StatusSeeOther || !strings.HasPrefix(at, "/audience/default/s") {
		t.Fatalf("%d to %s: %s", p.status, at, p.body)
	}
	p = b.get(at)
	p.isSafe(t, at)
	p.eachFieldHasALabel(t, at)
	p.has(t, "Subscriber added.", "Ann@example.com", "<b>Ann</b>", "subscribed</span>", "fair",
		"Yes <i>please</i>", `href="/suppressions?q=Ann%40example.com"`)
	if strings.Contains(p.body, "<b>Ann") || strings.Contains(p.body, "<i>please") {
		t.Error("what a stranger wrote is not escaped")
	}
	b.submitForm("/audience", url.Values{"account": {"default"}, "email": {"ann@example.com"}}).has(t,
		"There is already a subscriber with this address")
	change := url.Values{"version": {"1"}, "email": {"ann@example.org"}, "name": {"Ann"}, "locale": {"de"},
		"tz": {"Europe/Vienna"}, "tags": {"beta, vip"}, "attribute.0.name": {"plan"},
		"attribute.0.kind": {"text"}, "attribute.0.value": {"<pro>"}, "attribute.1.name": {"seats"},
		"attribute.1.kind": {"number"}, "attribute.1.value": {"3"}}
	b.submitForm(at, change).has(t, "Subscriber saved.", "ann@example.org", "Europe/Vienna",
		"beta, vip", `<dt>plan</dt><dd><pro></dd>`, `<dt>seats</dt><dd>3</dd>`)
	b.submitForm(at, change).has(t, "now at version 2, not 1")
	change.Set("version", "2")
	change.Set("attribute.1.value", "three")
	b.submitForm(at, change).has(t, "attributes.seats must be a number")
	change.Set("attribute.0.value", "")
	change.Set("attribute.1.value", "4")
	p = b.submitForm(at, change)
	p.has(t, `<dt>seats</dt><dd>4</dd>`)
	p.lacks(t, `<dt>plan</dt>`)

	b.submitForm(at+"/ask", url.Values{"list": {"news"}}).has(t, "Confirmation email for news sent.")
	b.submitForm(at+"/ask", url.Values{"list": {"confirmed"}}).has(t, "already confirmed")
	b.submitForm(at+"/leave", url.Values{"list": {"news"}}).has(t, "Unsubscribed from news",
		"left</span>")
	b.submitForm(at+"/leave", url.Values{"list": {"news"}}).has(t, "wasn’t subscribed to news")
	b.submitForm(at+"/subscribe", url.Values{"list": {"news"}}).has(t, `class="flash bad"`,
		"Not subscribed to news", "Record a consent")
	p = b.submitForm(at+"/subscribe", url.Values{"list": {"news"}, "source": {"phone"}, "resubscribe": {"on"}})
	p.has(t, "Subscribed.", "phone", "fair", "Yes <i>please</i>", "now</small>")
	b.submitForm(at+"/subscribe", url.Values{"list": {"none"}}).has(t, `There is no list "none"`)
	b.submitForm(at+"/delete", nil).has(t, "Subscriber deleted.", "No subscribers yet.")
	b.submitForm(at+"/delete", nil).has(t, "was already deleted")
	if p := b.get(at); p.status != http.StatusNotFound {
		t.Errorf("a deleted subscriber: %d", p.status)
	}
	entries, err := w.audit.List(t.Context(), api.AuditQuery{Kind: "subscriber", PageSize: 100})
	w.must(err)
	if text := fmt.Sprintf("%+v", entries.Entries); len(entries.Entries) < 10 || strings.Contains(text,
		"Vienna") || strings.Contains(text, "ann@") || entries.Entries[0].Object.Account != "default" {
		t.Errorf("the audit log names a person, or lacks entries: %s", text)
	}
}

func TestPersonIsErasedByThePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	at := w.subscriber("default", "ann@example.com")
	b := w.operator()
	b.get(at).has(t, "Erase everywhere")
	p := b.post(at+"/erase", nil)
	receipt := p.to()
	if p.status != http.StatusSeeOther || !strings.HasPrefix(receipt, "/erasures/") {
		t.Fatalf("%d to %s: %s", p.status, receipt, p.body)
	}
	p = b.get(receipt)
	p.isSafe(t, receipt)
	p.has(t, "The person is being erased.", "waiting", "Entries of the email log", "Backups.")
	p.lacks(t, "ann@example.com")
	if p := b.get("/erasures/unknown"); p.status != http.StatusNotFound {
		t.Errorf("an unknown one: %d", p.status)
	}
}

func TestSubscribersAreFilteredAndPaged(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	for i := range 60 {
		w.subscriber("default", fmt.Sprintf("a%d@example.com", i), "news")
	}
	w.subscriber("default", "ben@example.org")
	b := w.operator()
	b.get("/audience").has(t, "61 subscribers")
	first := b.get("/audience?list=news&state=subscribed")
	first.isSafe(t, "/audience")
	first.has(t, "60 subscribers", "Next", "Clear")
	next := regexp.MustCompile(`href="(/audience\?[^"]*cursor[^"]*)" rel="next"`).FindStringSubmatch(first.text())
	if next == nil {
		t.Fatal(first.body)
	}
	second := b.get(next[1])
	second.has(t, "continued", `>First</a>`)
	if n, m := strings.Count(first.body, "<tr>"), strings.Count(second.body, "<tr>"); n != 51 || m != 11 {
		t.Errorf("%d and %d rows", n, m)
	}
	p := b.get("/audience?q=BEN%40example.org")
	p.has(t, "ben@example.org")
	p.lacks(t, "a1@example.com")
	b.get("/audience?tag=none").has(t, "No subscriber matches.")
	for path, status := range map[string]int{"/audience?state=left": 400, "/audience?list=none": 404,
		"/audience?cursor=%21": 400, "/audience?q=" + strings.Repeat("x", 600): 400} {
		if p := b.get(path); p.status != status {
			t.Errorf("%.60s: %d, want %d", path, p.status, status)
		}
	}
}

// TestAudienceOfOthersIsNotShown to persons of another account, and viewers change nothing.
func TestAudienceOfOthersIsNotShown(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.account("acme")
	w.account("other")
	w.list("acme", "acme-news")
	w.list("other", "other-news")
	at := w.subscriber("acme", "ann@example.com", "acme-news")
	w.subscriber("other", "ben@example.com", "other-news")
	own := w.person("olga", api.RoleOperator, "acme")
	own.get("/lists").has(t, "acme-news")
	own.get(at).has(t, "ann@example.com", ">Unsubscribe<")
	viewer := w.person("vic", api.RoleViewer, "acme")
	p := viewer.get(at)
	p.has(t, "ann@example.com", "acme-news")
	p.lacks(t, "<button aria-label=\"Unsubscribe", "<form method=\"post\" action=\"/audience")
	viewer.get("/lists/acme-news").lacks(t, "Save", "Delete")
	viewer.get("/lists").lacks(t, "Create a list")
	viewer.get("/audience").lacks(t, "Add a subscriber")
	stranger := w.person("sam", api.RoleOperator, "other")
	p = stranger.get("/lists")
	p.has(t, "other-news")
	p.lacks(t, "acme-news")
	p = stranger.get("/audience")
	p.has(t, "ben@example.com")
	p.lacks(t, "ann@example.com")
	for path, status := range map[string]int{"/lists/acme-news": 404, "/lists?account=acme": 403, at: 403,
		"/audience?account=acme": 403, "/audience?list=acme-news": 404,
		strings.Replace(at, "/acme/", "/other/", 1) + "x": 404} {
		if p := stranger.get(path); p.status != status || strings.Contains(p.body, "ann@example.com") {
			t.Errorf("%s: %d, want %d: %s", path, p.status, status, p.body)
		}
	}
	form := url.Values{"version": {"1"}, "name": {"x"}, "optIn": {"single"}, "email": {"x@example.com"},
		"list": {"acme-news"}, "account": {"acme"}}
	for _, path := range []string{"/lists", "/lists/acme-news", "/lists/acme-news/delete", "/audience", at,
		at + "/subscribe", at + "/ask", at + "/leave", at + "/delete"} {
		if p := viewer.post(path, form); p.status != http.StatusForbidden {
			t.Errorf("POST %s of a viewer: %d", path, p.status)
		}
		if p := stranger.post(path, form); p.status == http.StatusSeeOther {
			stranger.get(p.to()).has(t, `class="flash bad"`)
		} else if p.status != http.StatusForbidden {
			t.Errorf("POST %s of another account: %d", path, p.status)
		}
	}
	list, err := w.audience.Lists.Get(t.Context(), "", "acme-news")
	w.must(err)
	if list.Version != 1 || list.Counts.Subscribed != 1 {
		t.Errorf("changed by another account: %+v", list)
	}
	if lists, err := w.audience.Lists.Page(t.Context(), "", api.ListQuery{}); err != nil || lists.Total != 2 {
		t.Errorf("%+v, %v", lists, err)
	}
}
