package ui

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestSubscribersAreImportedOnThePages tries a file, imports it, and finds the faults by line. JSONL is known
// by its name.
func TestSubscribersAreImportedOnThePages(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	b := w.operator()
	b.get("/lists/news").has(t, `href="/imports?account=default&list=news"`)
	form := b.get("/imports?account=default&list=news")
	form.isSafe(t, "/imports")
	form.eachFieldHasALabel(t, "/imports")
	form.has(t, "No imports into account default", `name="lists" value="news" checked`, "multipart/form-data")
	file := "Mail;Seats;Shoe\nann@example.com;3;41\nnobody;1;1\nben@example.com;2;42\nANN@example.com;4;1\n"
	fields := []string{"account", "default", "lists", "news", "state", "subscribed", "existing", "merge",
		"columns", "Mail:email,Seats:attributes.seats:number", "delimiter", ";", "tag", "shop"}
	p := b.upload("/imports", file, fields...)
	if p.status != http.StatusSeeOther || !strings.HasPrefix(p.to(), "/imports?account=default") {
		t.Fatalf("without consent: %d to %s", p.status, p.to())
	}
	b.get(p.to()).has(t, `class="flash bad"`, "consent", `name="lists" value="news" checked`)
	fields = append(fields, "consent", "I want <news>")
	p = b.upload("/imports", file, append(fields, "dryRun", "on")...)
	tried := b.get(p.to())
	tried.isSafe(t, p.to())
	tried.has(t, "done", "4 lines", "2 would be added", "1 repeated", "1 rejected",
		"This was a dry run",
		`data-label="Line" class="num">3</th>`, "it has no @", `<span class="tag">Shoe</span>`)
	b.get("/audience?account=default").lacks(t, "ann@example.com")
	_, id, _ := strings.Cut(p.to(), "/imports/default/")
	b.get("/imports?id="+id).has(t, `name="id" value="`+id+`"`)
	p = b.upload("/imports", file, append(fields, "id", id)...)
	b.get(p.to()).has(t, "2 added", "1 rejected")
	b.get("/imports").has(t, id, "done")
	b.get("/audience?account=default&list=news&tag=shop").has(t, "ann@example.com", "ben@example.com")
	found, err := w.audience.Get(t.Context(), "", api.SubscriberAccount{}, "ann@example.com")
	w.must(err)
	if len(found.Lists) != 1 || found.Lists[0].State != "subscribed" || found.Attributes["seats"] != 3.0 {
		t.Errorf("%+v", found)
	}
	p = b.uploadAs("More.JSONL", "/imports", `{"email":"cy@example.com","name":"Cy"}`+"\n", "account", "default")
	b.get(p.to()).has(t, "1 added", "none rejected")
	b.submitForm("/imports/default/"+id+"/stop", nil).has(t, "deleted. Its subscribers stay")
	if p := b.get("/imports/default/" + id); p.status != http.StatusNotFound {
		t.Errorf("a forgotten import: %d", p.status)
	}
	if p := b.post("/imports", url.Values{}); p.status != http.StatusBadRequest {
		t.Errorf("no file: %d", p.status)
	}
}

// TestColumnsOfAnImportAreMappedOnAPreview of the first rows, which stores nothing.
func TestColumnsOfAnImportAreMappedOnAPreview(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	b := w.operator()
	file := "E-Mail;Given;Plan <size>;Shoe\nann@example.com;Ann;3;41\nben@example.com;Ben;2;42\n" +
		strings.Repeat("cy@example.com;Cy;1;1\n", 5)
	p := b.upload("/imports/preview", file, "account", "default", "lists", "news", "consent", "I want <news>")
	p.isSafe(t, "/imports/preview")
	p.eachFieldHasALabel(t, "/imports/preview")
	p.has(t, `value="email" selected`, "<td>ann@example.com</td>", "Plan <size>", `value="I want <news>"`,
		`name="lists" value="news" checked`, `value="attributes.Plan__size:number"`, `value="" selected>skip`)
	if n := strings.Count(p.body, "<td>cy@"); n != 3 {
		t.Errorf("%d rows of Cy are shown", n)
	}
	b.get("/audience").lacks(t, "ann@example.com")
	part := b.upload("/imports/preview?part=columns", "Name\nAnn\n", "account", "default")
	part.has(t, "has no column of addresses", `value="name" selected`)
	part.lacks(t, "<html")

	fields := []string{"account", "default", "lists", "news", "state", "subscribed", "existing", "merge",
		"consent", "I want news"}
	for i, heading := range []string{"E-Mail", "Given", "Plan <size>", "Shoe"} {
		fields = append(fields, "heading", heading, "automatic", []string{"email", "", "", ""}[i], "column",
			[]string{"email", "first", "attributes.Plan__size:number", ""}[i])
	}
	b.get(b.upload("/imports", file, fields...).to()).has(t, "3 added", "4 repeated")
	found, err := w.audience.Get(t.Context(), "", api.SubscriberAccount{}, "ann@example.com")
	w.must(err)
	if found.Name != "Ann" || found.Attributes["Plan__size"] != 3.0 || len(found.Attributes) != 1 {
		t.Errorf("%+v", found)
	}
}

// TestImportsOfAnotherAccount: who is confined to an account sees no import of another, and makes none there.
func TestImportsOfAnotherAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.account("acme")
	w.account("other")
	w.list("acme", "acme-news")
	own := w.person("olga", api.RoleOperator, "acme")
	p := own.upload("/imports", "email\nann@example.com\n", "account", "acme")
	at := p.to()
	own.get(at).has(t, "1 added")
	viewer, stranger := w.person("vic", api.RoleViewer, "acme"), w.person("sam", api.RoleOperator, "other")
	viewer.get(at).lacks(t, "Delete import")
	viewer.get("/imports").lacks(t, "<button class=\"primary\" id=\"import\"")
	if p := viewer.upload("/imports", "email\nx@example.com\n", "account", "acme"); p.status !=
		http.StatusForbidden {
		t.Errorf("an import of a viewer: %d", p.status)
	}
	if p := stranger.upload("/imports", "email\nx@example.com\n", "account", "acme"); p.status !=
		http.StatusForbidden {
		t.Errorf("an import into another account: %d", p.status)
	}
	for path, status := range map[string]int{at: 403, strings.Replace(at, "/acme/", "/other/", 1): 404,
		"/imports?account=acme": 403, "/lists/acme-news/form": 404, "/lists/acme-news/form/preview": 404} {
		if p := stranger.get(path); p.status != status {
			t.Errorf("%s: %d, want %d", path, p.status, status)
		}
	}
	if p := stranger.post(at+"/stop", url.Values{}); p.status == http.StatusSeeOther {
		stranger.get("/imports").has(t, `class="flash bad"`)
	}
	own.get(at).has(t, "1 added")
	if page, err := w.audience.Page(t.Context(), "", api.SubscriberQuery{Account: "acme"}); err != nil ||
		len(page.Subscribers) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestTheFormOfAList is shown to copy, and as it looks. The frame sends nothing.
func TestTheFormOfAList(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	b := w.operator()
	b.get("/lists/news/form").has(t, "has no form, because it isn't public")
	if p := b.get("/lists/news/form/preview"); p.status != http.StatusConflict {
		t.Errorf("the preview of no form: %d", p.status)
	}
	_, err := w.audience.Lists.Update(t.Context(), "", "news", api.ListPatch{Public: new(true)})
	w.must(err)
	b.get("/lists/news").has(t, `href="/lists/news/form"`)
	p := b.get("/lists/news/form")
	p.isSafe(t, "/lists/news/form")
	p.eachFieldHasALabel(t, "/lists/news/form")
	p.has(t, "https://mail.example.com/subscribers?listId=news", `src="/lists/news/form/preview" sandbox`,
		`<input type="email"`)
	f := b.get("/lists/news/form/preview")
	f.has(t, `<form method="post" action="https://mail.example.com/subscribers"`, `name="website"`)
	if policy := f.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "sandbox;") ||
		!strings.Contains(policy, "form-action 'none'") {
		t.Errorf("the preview may do too much: %s", policy)
	}
}
