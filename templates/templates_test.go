package templates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/internal/testrecords"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/mailtemplate"
	"github.com/postroom/postroom/redisdb"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// bundle is a store on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Templates
	db    *redisdb.DB
	clock *testrecords.Clock
	url   string
}

func setup(t *testing.T, change ...func(*Options)) bundle {
	t.Helper()
	t.Parallel()
	return process(t, testredis.URL(t), change...)
}

// process is one more process on the same Redis.
func process(t *testing.T, url string, change ...func(*Options)) bundle {
	t.Helper()
	b := bundle{db: testredis.Connect(t, redisdb.Options{URL: url}), clock: &testrecords.Clock{}, url: url}
	o := Options{Now: b.clock.Now}
	for _, c := range change {
		c(&o)
	}
	var err error
	if b.Templates, err = New(b.db, people{}, o); err != nil {
		t.Fatal(err)
	}
	return b
}

// people are two accounts.
type people struct{}

func (people) Sender(_ context.Context, account string) (mailtemplate.Person, error) {
	switch account {
	case "", "shop":
		return mailtemplate.Person{Name: "Shop", Address: "shop@example.com"}, nil
	case "blog":
		return mailtemplate.Person{Name: "Blog", Address: "blog@example.com"}, nil
	}
	return mailtemplate.Person{}, fault.New(fault.NotFound, "AccountNotFound", "There is no such account")
}

func (people) ServiceURL() string { return "https://mail.example.com" }

// html is a template of which only the html matters.
func html(id, text string) api.TemplateRequest { return of("template", id, text) }

func partial(name, text string) api.TemplateRequest { return of("partial", name, text) }

func of(kind, id, text string) api.TemplateRequest {
	return api.TemplateRequest{ID: id, Name: id, Kind: kind, TemplateDefinition: definition{Content: api.TemplateContent{HTML: text}}}
}

// in gives a template to an account; its id is made of both.
func in(account string, req api.TemplateRequest) api.TemplateRequest {
	req.Account, req.ID = &account, account+"-"+req.ID
	return req
}

func (b bundle) create(t *testing.T, all ...api.TemplateRequest) {
	t.Helper()
	for _, req := range all {
		if _, err := b.Create(t.Context(), "", req); err != nil {
			t.Fatalf("create %s: %v", req.ID, err)
		}
	}
}

// rewrite replaces the html of a template.
func (b bundle) rewrite(ctx context.Context, id, text string) error {
	_, err := b.Update(ctx, "", id, api.TemplatePatch{Content: &api.TemplateContent{HTML: text}})
	return err
}

// says gives what a template says as html, as the outbox would have it said.
func (b bundle) says(t *testing.T, account, id, locale string) string {
	t.Helper()
	found, err := b.Template(t.Context(), account, id, locale)
	if err != nil {
		t.Fatal(err)
	}
	read, err := mailtemplate.Parse(found.Source, found.Options)
	if err != nil {
		t.Fatal(err)
	}
	mail, err := read.Render(t.Context(), mailtemplate.Input{Data: map[string]any{"x": "<x>"}})
	if err != nil {
		t.Fatal(err)
	}
	return mail.HTML
}

// refused holds an error to its kind and code.
func refused(t *testing.T, what string, err error, kind fault.Kind, code string) {
	t.Helper()
	if !fault.Is(err, kind) || fault.CodeOf(err) != code {
		t.Errorf("%s: %v; want %s %s", what, err, kind, code)
	}
}

// fieldsOf lists the fields that an error names, with what it says of them.
func fieldsOf(t *testing.T, err error) []string {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		t.Fatalf("%v is no fault", err)
	}
	var all []string
	for _, field := range f.Fields {
		all = append(all, field.Key+": "+field.Message)
	}
	return all
}

func TestATemplateIsStoredShownChangedAndDeleted(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	req := api.TemplateRequest{Name: "Order", Description: "d", TemplateDefinition: definition{
		Content: api.TemplateContent{Subject: "Hi {{params.name}}", HTML: "<p>{{params.name}}</p>", PreviewText: "p"}, Sample: json.RawMessage(`{"name": "\u003cAnn\u0026\\u003c>"}`),
	}}
	created, err := b.Create(ctx, "", req)
	if err != nil || !created.Created || created.Account != nil || len(created.ID) != 20 || created.Version != 1 {
		t.Fatalf("%+v, %v", created, err)
	}
	head := api.TemplateHead{ID: created.ID, Name: "Order", Description: "d", Kind: "template", Version: 1, Created: testrecords.Start, Updated: testrecords.Start}
	want := api.Template{TemplateHead: head, TemplateDefinition: req.TemplateDefinition}
	want.Format, want.Sample = "html", json.RawMessage(`{"name":"<Ann&\\u003c>"}`)
	got, err := b.Get(ctx, "", created.ID)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("get (-want +got):\n%s%v", diff, err)
	}
	b.clock.Advance(time.Hour)
	for _, step := range []struct {
		name    string
		patch   api.TemplatePatch
		version int
	}{
		{"the same again", api.TemplatePatch{Content: &req.Content, Format: new("html"), Locales: &map[string]api.TemplateContent{}}, 1},
		{"another name", api.TemplatePatch{Name: new("Orders"), Version: 1}, 1},
		{"another content", api.TemplatePatch{Content: &api.TemplateContent{Text: "only text"}}, 2},
		{"without sample", api.TemplatePatch{Sample: new(json.RawMessage(`{ }`)), Missing: new("error")}, 3},
	} {
		answer, err := b.Update(ctx, "", created.ID, step.patch)
		if err != nil || answer.Version != step.version || !answer.Updated || answer.ID != created.ID {
			t.Errorf("%s: %+v, %v", step.name, answer, err)
		}
	}
	got, err = b.Get(ctx, "", created.ID)
	if err != nil || got.Name != "Orders" || got.Description != "d" || got.Content != (api.TemplateContent{Text: "only text"}) || got.Sample != nil ||
		got.Missing != "error" || !got.Updated.Equal(b.clock.Now()) || !got.Created.Equal(testrecords.Start) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = b.Update(ctx, "", created.ID, api.TemplatePatch{Name: new("X"), Version: 2})
	refused(t, "a change made from an old version", err, fault.Conflict, "TemplateChanged")
	if answer, err := b.Delete(ctx, "", created.ID); err != nil || !answer.Deleted || answer.ID != created.ID {
		t.Errorf("%+v, %v", answer, err)
	}
	for what, try := range map[string]func() error{
		"get":      func() error { _, err := b.Get(ctx, "", created.ID); return err },
		"update":   func() error { _, err := b.Update(ctx, "", created.ID, api.TemplatePatch{}); return err },
		"delete":   func() error { _, err := b.Delete(ctx, "", created.ID); return err },
		"versions": func() error { _, err := b.Versions(ctx, "", created.ID); return err },
		"version":  func() error { _, err := b.Version(ctx, "", created.ID, 1); return err },
		"restore":  func() error { _, err := b.Restore(ctx, "", created.ID, 1); return err },
		"preview":  func() error { _, err := b.Preview(ctx, "", created.ID, api.TemplatePreviewRequest{}); return err },
		"use":      func() error { _, err := b.Template(ctx, "", created.ID, ""); return err },
		"odd id":   func() error { _, err := b.Get(ctx, "", created.ID+":state"); return err },
	} {
		refused(t, what+" what is deleted", try(), fault.NotFound, "TemplateNotFound")
	}
	if keys := b.db.Client().Keys(ctx, "*").Val(); !cmp.Equal(keys, []string{b.store.VersionKey()}) {
		t.Errorf("left behind: %q", keys)
	}
}

func TestFaultsAreToldAllAtOnceWithTheirPaths(t *testing.T) {
	b := setup(t)
	b.create(t, partial("ok", "{{a}}"), partial("md", "x"), of("layout", "frame", "<b>{{> @partial-block}}</b>"))
	if _, err := b.Update(t.Context(), "", "md", api.TemplatePatch{Format: new("markdown")}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		req  api.TemplateRequest
		kind fault.Kind
		want []string
	}{
		{"syntax, in each part and variant", api.TemplateRequest{Name: "n", TemplateDefinition: definition{
			Content: api.TemplateContent{Subject: "{{#if}}", HTML: "{{> nobody}}", Text: "{{a"},
			Locales: map[string]api.TemplateContent{"de": {Subject: "{{/if}}", Text: "{{> ok}}"}, "fr": {HTML: "{{> ok}}{{#each x}}"}},
		}}, fault.Unprocessable, []string{
			"content.html: line 1, column 1: there is no partial \"nobody\"", "content.subject: ", "content.text: ", "locales.de.subject: ", "locales.fr.html: ",
		}},
		{"fields", api.TemplateRequest{Name: " ", Kind: "thing", TemplateDefinition: definition{
			Format: "latex", Missing: "maybe", Sample: json.RawMessage(`[]`), Layout: "frame",
			Locales: map[string]api.TemplateContent{"german!": {Text: "x"}, "de": {}, "DE": {Text: "x"}},
		}}, fault.Invalid, []string{
			"kind: must be", "format: must be html or markdown", "layout: is for templates", "missing: must be empty or error", "content: must have a subject",
			"locales.de: is there twice", "locales.de: must have", "locales.german!: must be a locale", "sample: must be of type object",
		}},
		{"mjml", api.TemplateRequest{Name: "n", TemplateDefinition: definition{Format: "mjml", Content: api.TemplateContent{HTML: "<mjml></mjml>"}}}, fault.Invalid,
			[]string{"format: must be html or markdown: MJML is compiled when the template is written, with npx mjml"}},
		{"fields and syntax", api.TemplateRequest{Name: "n", TemplateDefinition: definition{Missing: "x", Content: api.TemplateContent{HTML: "{{"}}}, fault.Invalid,
			[]string{"missing: ", "content.html: "}},
		{"no such layout", api.TemplateRequest{Name: "n", TemplateDefinition: definition{Layout: "ok", Content: api.TemplateContent{HTML: "x"}}}, fault.Unprocessable,
			[]string{`layout: there is no layout "ok"`}},
		{"a partial in the other format", api.TemplateRequest{Name: "n", TemplateDefinition: definition{Content: api.TemplateContent{HTML: "{{> md}}"}}}, fault.Unprocessable,
			[]string{`content.html: the partial "md" is written in markdown, this in html`}},
		{"a layout without a place", of("layout", "l", "<b></b>"), fault.Invalid, []string{"content.html: must say with {{> @partial-block}}"}},
		{"a layout with a subject", api.TemplateRequest{Name: "l", Kind: "layout", TemplateDefinition: definition{
			Format: "markdown", Content: api.TemplateContent{Subject: "x", Text: "y"}}}, fault.Invalid,
			[]string{"format: of a layout", "content.subject: is for templates", "content.text: is for templates", "content.html: is required"}},
		{"the name of a partial", partial("a b", "x"), fault.Invalid, []string{"name: of a partial"}},
		{"too large", html("n", strings.Repeat("x", maxPart+1)), fault.Invalid, []string{"content.html: must not be larger than 256 KB"}},
		{"too large together", api.TemplateRequest{Name: "n", TemplateDefinition: definition{Content: api.TemplateContent{Text: strings.Repeat("x", maxPart)}, Locales: map[string]api.TemplateContent{
			"de": {Text: strings.Repeat("x", maxPart)}, "fr": {Text: strings.Repeat("x", maxPart)}, "it": {Text: strings.Repeat("x", maxPart)}, "es": {Text: "x"},
		}}}, fault.Invalid, []string{"content: must not be larger than 1 MB"}},
		{"a partial that includes itself", partial("me", "{{> me}}"), fault.Unprocessable, []string{"content.html: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.req.ID = ""; test.req.Kind == "" {
				test.req.Kind = "template"
			}
			_, err := b.Create(t.Context(), "", test.req)
			if !fault.Is(err, test.kind) {
				t.Fatalf("%v", err)
			}
			got := fieldsOf(t, err)
			if len(got) != len(test.want) {
				t.Fatalf("got %q\nwant %q", got, test.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], test.want[i]) {
					t.Errorf("got %q, want %q", got[i], test.want[i])
				}
			}
		})
	}
	page, err := b.List(t.Context(), "", api.TemplateQuery{})
	if err != nil || page.Total != 3 {
		t.Errorf("something with faults was stored: %+v, %v", page, err)
	}
}

func TestNamesAndNumbersAreBounded(t *testing.T) {
	b := setup(t, func(o *Options) { o.Max = 3 })
	b.create(t, partial("p", "1"), in("shop", partial("p", "2")))
	_, err := b.Create(t.Context(), "", api.TemplateRequest{ID: "other", Name: "p", Kind: "partial", TemplateDefinition: definition{Content: api.TemplateContent{HTML: "x"}}})
	refused(t, "another partial of that name", err, fault.Conflict, "TemplateExists")
	_, err = b.Create(t.Context(), "", html("p", "x"))
	refused(t, "another template of that id", err, fault.Conflict, "TemplateExists")
	b.create(t, html("a", "x"))
	_, err = b.Create(t.Context(), "", html("b", "x"))
	refused(t, "one too many", err, fault.Conflict, "TooManyTemplates")
}

func TestPartialsAndLayouts(t *testing.T) {
	b := setup(t)
	b.create(t,
		partial("brand/name", "ACME"), partial("footer", "[{{> brand/name}} {{x}}]"), of("layout", "frame", "<body>{{> @partial-block}}{{> footer}}</body>"),
		in("shop", partial("brand/name", "Shop")),
	)
	everybody := html("everybody", "<p>{{x}}</p>")
	everybody.Layout = "frame"
	shops := in("shop", html("own", "{{> brand/name}} {{> footer}}"))
	computed := html("computed", `{{> (lookup . "x")}}`)
	md := html("md", "*{{x}}*")
	md.Format, md.Layout = "markdown", "frame"
	b.create(t, everybody, shops, computed, md)
	for _, test := range []struct{ account, id, want string }{
		{"", "everybody", "<body><p>&lt;x&gt;</p>[ACME &lt;x&gt;]</body>"},
		{"shop", "everybody", "<body><p>&lt;x&gt;</p>[ACME &lt;x&gt;]</body>"}, // an account changes nothing about what is everybody's
		{"shop", "shop-own", "Shop [Shop &lt;x&gt;]"},
		{"", "md", "<body><p><em>&lt;x&gt;</em></p>\n[ACME &lt;x&gt;]</body>"},
	} {
		if got := b.says(t, test.account, test.id, ""); got != test.want {
			t.Errorf("%s of %q: %q, want %q", test.id, test.account, got, test.want)
		}
	}
	_, err := b.Template(t.Context(), "blog", "shop-own", "")
	refused(t, "another account's template", err, fault.NotFound, "TemplateNotFound")
	_, err = b.Template(t.Context(), "shop", "frame", "")
	refused(t, "a layout by itself", err, fault.Unprocessable, "TemplateFault")

	found, err := b.Template(t.Context(), "", "everybody", "")
	if diff := cmp.Diff(map[string]string{"footer": "[{{> brand/name}} {{x}}]", "brand/name": "ACME"}, found.Options.Partials); diff != "" || err != nil {
		t.Errorf("just what it can reach: %s%v", diff, err)
	}
	if found, err = b.Template(t.Context(), "", "computed", ""); len(found.Options.Partials) != 2 || err != nil {
		t.Errorf("all that it may reach: %v, %v", found.Options.Partials, err)
	}
}

func TestAChangeThatWouldBreakOthersIsRefused(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, partial("inner", "1"), partial("outer", "{{> inner}}"), html("user", "{{> outer}}"), of("layout", "frame", `{{> @partial-block}}{{#> title}}none{{/title}}`))
	framed := html("framed", `{{#*inline "title"}}{{> inner}}{{/inline}}x`)
	framed.Layout = "frame"
	b.create(t, framed)
	for what, try := range map[string]func() error{
		"a partial that a partial uses":  func() error { _, err := b.Delete(ctx, "", "inner"); return err },
		"a partial that a template uses": func() error { _, err := b.Delete(ctx, "", "outer"); return err },
		"a layout that is used":          func() error { _, err := b.Delete(ctx, "", "frame"); return err },
		"another name":                   func() error { _, err := b.Update(ctx, "", "outer", api.TemplatePatch{Name: new("outer2")}); return err },
		"another format": func() error {
			_, err := b.Update(ctx, "", "outer", api.TemplatePatch{Format: new("markdown"), Content: &api.TemplateContent{HTML: "x"}})
			return err
		},
		"one that makes a user a circle": func() error {
			_, err := b.Create(ctx, "", api.TemplateRequest{ID: "title", Name: "title", Kind: "partial", TemplateDefinition: definition{Content: api.TemplateContent{HTML: strings.Repeat("x", 100)}}})
			if err != nil {
				return err
			}
			return b.rewrite(ctx, "title", "{{> nobody}}")
		},
	} {
		err := try()
		if !fault.Is(err, fault.Conflict) && !fault.Is(err, fault.Unprocessable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := b.Delete(ctx, "", "inner")
	refused(t, "delete", err, fault.Conflict, "TemplateInUse")
	if !strings.Contains(err.Error(), "framed, outer") {
		t.Errorf("the users are not named: %v", err)
	}
	if _, err = b.Update(ctx, "", "outer", api.TemplatePatch{Name: new("outer2")}); !strings.Contains(err.Error(), `user (content.html: line 1, column 1: there is no partial "outer")`) {
		t.Errorf("what would break is not named: %v", err)
	}
	err = b.rewrite(ctx, "inner", "{{> outer}}")
	refused(t, "a circle of two", err, fault.Unprocessable, "TemplateFault")
	if err := b.rewrite(ctx, "inner", "{{#if x}}{{> outer}}{{/if}}"); err != nil {
		t.Errorf("a circle that may end: %v", err)
	}
	if err := b.rewrite(ctx, "outer", "{{> inner}} changed"); err != nil {
		t.Errorf("a change that breaks nothing: %v", err)
	}
	for _, id := range []string{"user", "framed", "frame", "outer"} {
		if id == "outer" { // the two use each other
			if err := b.rewrite(ctx, "inner", "1"); err != nil {
				t.Error(err)
			}
		}
		if _, err := b.Delete(ctx, "", id); err != nil {
			t.Errorf("delete %s, which nobody uses any more: %v", id, err)
		}
	}
	if _, err := b.Delete(ctx, "", "inner"); err != nil {
		t.Error(err)
	}
}

func TestAnAccountsOwnPartialIsCheckedAgainstItsTemplates(t *testing.T) {
	b := setup(t)
	b.create(t, partial("p", "everybody's"), in("shop", html("t", "{{> p}}")), html("all", "{{> p}}"))
	own := in("shop", partial("p", "own"))
	own.Format = "markdown"
	_, err := b.Create(t.Context(), "", own)
	refused(t, "one that would break the account's template", err, fault.Conflict, "TemplateInUse")
	b.create(t, in("shop", partial("p", "own")))
	if got := b.says(t, "shop", "shop-t", "") + "," + b.says(t, "shop", "all", ""); got != "own,everybody's" {
		t.Error(got)
	}
	_, err = b.Delete(t.Context(), "", "shop-p")
	refused(t, "delete", err, fault.Conflict, "TemplateInUse")
	if _, err := b.Delete(t.Context(), "", "p"); !strings.Contains(fmt.Sprint(err), "used by all") || strings.Contains(fmt.Sprint(err), "shop") {
		t.Errorf("used by those that mean it only: %v", err)
	}
}

func TestLocales(t *testing.T) {
	b := setup(t)
	variants := func(req api.TemplateRequest, v map[string]api.TemplateContent) api.TemplateRequest {
		req.Locales = v
		return req
	}
	b.create(t,
		variants(partial("bye", "Bye"), map[string]api.TemplateContent{"de": {HTML: "Tschüss"}, "de-CH": {HTML: "Adieu"}, "it": {HTML: "Ciao"}}),
		variants(html("t", "Hello {{> bye}}"), map[string]api.TemplateContent{"de": {HTML: "Hallo {{> bye}}"}, "pt-BR": {HTML: "Olá {{> bye}}"}}),
	)
	for locale, want := range map[string]string{
		"": "Hello Bye", "en": "Hello Bye", "de": "Hallo Tschüss", "de-CH": "Hallo Adieu", "de_ch": "Hallo Adieu", "de-AT": "Hallo Tschüss", "it": "Hello Ciao", "pt": "Olá Bye", "xx-" + strings.Repeat("y", 100): "Hello Bye",
	} {
		for range 2 { // read, and remembered
			if got := b.says(t, "", "t", locale); got != want {
				t.Errorf("%q: %q, want %q", locale, got, want)
			}
		}
	}
	d := definition{Content: api.TemplateContent{Subject: "s", PreviewText: "p", HTML: "h", Text: "t"}, Locales: map[string]api.TemplateContent{
		"de": {Subject: "S"}, "fr": {HTML: "H"}, "it": {Text: "T"},
	}}
	for locale, want := range map[string]api.TemplateContent{
		"en": d.Content, "de": {Subject: "S", PreviewText: "p", HTML: "h", Text: "t"}, "fr": {Subject: "s", PreviewText: "p", HTML: "H"}, "it": {Subject: "s", PreviewText: "p", HTML: "h", Text: "T"},
	} {
		if got, _ := variantOf(&d, locale); got != want {
			t.Errorf("%s: %+v, want %+v", locale, got, want)
		}
	}
}

func TestVersions(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, html("t", "1"))
	for i := 2; i <= 25; i++ {
		b.clock.Advance(time.Minute)
		if err := b.rewrite(ctx, "t", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	all, err := b.Versions(ctx, "", "t")
	if err != nil || all.Version != 25 || len(all.Versions) != keepVersions || all.Versions[0].Version != 25 || all.Versions[19].Version != 6 || all.Versions[0].Size == 0 ||
		!all.Versions[0].Created.Equal(b.clock.Now()) {
		t.Fatalf("%+v, %v", all, err)
	}
	if n := b.db.Client().HLen(ctx, b.store.StateKey("t")).Val(); n != keepVersions {
		t.Errorf("%d versions are in Redis", n)
	}
	v, err := b.Version(ctx, "", "t", 6)
	if err != nil || v.Content.HTML != "6" || v.Version != 6 {
		t.Errorf("%+v, %v", v, err)
	}
	_, err = b.Version(ctx, "", "t", 5)
	refused(t, "one that is gone", err, fault.NotFound, "TemplateVersionNotFound")
	_, err = b.Restore(ctx, "", "t", 5)
	refused(t, "restore one that is gone", err, fault.NotFound, "TemplateVersionNotFound")
	answer, err := b.Restore(ctx, "", "t", 7)
	if err != nil || answer.Version != 26 || b.says(t, "", "t", "") != "7" {
		t.Errorf("%+v, %v", answer, err)
	}
	if all, err = b.Versions(ctx, "", "t"); err != nil || all.Versions[0].Restored != 7 || all.Versions[19].Version != 7 {
		t.Errorf("%+v, %v", all, err)
	}
	if answer, err := b.Restore(ctx, "", "t", 26); err != nil || answer.Version != 26 {
		t.Errorf("what it says already: %+v, %v", answer, err)
	}

	b.create(t, partial("p", "x"), html("u", "{{> p}}"))
	if err := b.rewrite(ctx, "u", "plain"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Delete(ctx, "", "p"); err != nil {
		t.Fatal(err)
	}
	_, err = b.Restore(ctx, "", "u", 1)
	refused(t, "one whose partial is gone", err, fault.Unprocessable, "TemplateFault")
}

func TestLargeVersionsAreFewer(t *testing.T) {
	r, now := record{}, testrecords.Start
	for range 8 {
		state, err := r.renew(&definition{Content: api.TemplateContent{Text: strings.Repeat("x", 1<<20)}}, 0, now)
		if err != nil || len(state) == 0 {
			t.Fatal(err)
		}
	}
	if len(r.Versions) != 3 || r.Versions[2].Number != 8 {
		t.Errorf("%+v", r.Versions)
	}
}

func TestWhoIsConfinedToAnAccount(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, html("all", "everybody's"), in("shop", html("t", "shop's")), in("blog", html("t", "blog's")))
	page, err := b.List(ctx, "shop", api.TemplateQuery{})
	if err != nil || page.Total != 2 || page.Templates[0].ID != "all" || page.Templates[1].ID != "shop-t" {
		t.Errorf("%+v, %v", page, err)
	}
	if got, err := b.Get(ctx, "shop", "all"); err != nil || got.Content.HTML != "everybody's" {
		t.Errorf("%+v, %v", got, err)
	}
	for what, try := range map[string]func(id string) error{
		"update": func(id string) error {
			_, err := b.Update(ctx, "shop", id, api.TemplatePatch{Name: new("x")})
			return err
		},
		"delete":  func(id string) error { _, err := b.Delete(ctx, "shop", id); return err },
		"restore": func(id string) error { _, err := b.Restore(ctx, "shop", id, 1); return err },
	} {
		refused(t, what+" everybody's", try("all"), fault.Forbidden, "")
		refused(t, what+" another's", try("blog-t"), fault.NotFound, "TemplateNotFound")
	}
	for what, try := range map[string]func() error{
		"get":      func() error { _, err := b.Get(ctx, "shop", "blog-t"); return err },
		"versions": func() error { _, err := b.Versions(ctx, "shop", "blog-t"); return err },
		"version":  func() error { _, err := b.Version(ctx, "shop", "blog-t", 1); return err },
		"preview":  func() error { _, err := b.Preview(ctx, "shop", "blog-t", api.TemplatePreviewRequest{}); return err },
	} {
		refused(t, what+" another's", try(), fault.NotFound, "TemplateNotFound")
	}
	_, err = b.Create(ctx, "shop", in("blog", html("u", "x")))
	refused(t, "create for another", err, fault.Forbidden, "")
	created, err := b.Create(ctx, "shop", html("mine", "x"))
	if err != nil || *created.Account != "shop" {
		t.Errorf("%+v, %v", created, err)
	}
	_, err = b.Preview(ctx, "shop", "all", api.TemplatePreviewRequest{Account: "blog"})
	refused(t, "preview as another", err, fault.Forbidden, "")
	_, err = b.Try(ctx, "shop", api.TemplateTrial{Account: "blog"})
	refused(t, "try as another", err, fault.Forbidden, "")
	if p, err := b.Preview(ctx, "shop", "all", api.TemplatePreviewRequest{}); err != nil || p.HTML != "everybody's" {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestFlush(t *testing.T) {
	b := setup(t)
	b.create(t, html("all", "x"), in("shop", partial("p", "x")), in("shop", html("t", "{{> p}}")), in("blog", html("t", "x")))
	for _, want := range []int{2, 0} {
		if n, err := b.Flush(t.Context(), "shop"); n != want || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	if n, err := b.Flush(t.Context(), ""); n != 0 || err != nil {
		t.Errorf("nobody's: %d, %v", n, err)
	}
	if page, err := b.List(t.Context(), "", api.TemplateQuery{}); err != nil || page.Total != 2 {
		t.Errorf("%+v, %v", page, err)
	}
}

func TestList(t *testing.T) {
	b := setup(t)
	for i := range 7 {
		req := html(fmt.Sprintf("t%d", i), "x")
		req.Description = fmt.Sprintf("Number %d", i%3)
		b.create(t, req)
	}
	b.create(t, partial("p", "x"), in("shop", html("t", "x")))
	for _, test := range []struct {
		name  string
		q     api.TemplateQuery
		total int
		pages int
		first string
		rows  int
	}{
		{"all", api.TemplateQuery{}, 9, 1, "p", 9},
		{"a page", api.TemplateQuery{Page: 1, PageSize: 4}, 9, 3, "t2", 4},
		{"the last page", api.TemplateQuery{Page: 2, PageSize: 4}, 9, 3, "t6", 1},
		{"beyond", api.TemplateQuery{Page: 9, PageSize: 4}, 9, 3, "", 0},
		{"a kind", api.TemplateQuery{Kind: "partial"}, 1, 1, "p", 1},
		{"an account", api.TemplateQuery{Account: "shop"}, 1, 1, "shop-t", 1},
		{"a search", api.TemplateQuery{Search: "NUMBER 1"}, 2, 1, "t1", 2},
		{"nothing", api.TemplateQuery{Search: "zzz"}, 0, 0, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := b.List(t.Context(), "", test.q)
			if err != nil || p.Total != test.total || p.Pages != test.pages || len(p.Templates) != test.rows || p.Templates == nil || test.rows > 0 && p.Templates[0].ID != test.first {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// TestChangesAtTheSameTimeAgree has two processes change templates that need each other, in all ways at once. Whatever comes of it, what is
// stored can be read in the end, and no change is lost.
func TestChangesAtTheSameTimeAgree(t *testing.T) {
	b := setup(t)
	other := process(t, b.url)
	ctx := t.Context()
	b.create(t, html("t", "0"))
	var wg sync.WaitGroup
	again := func(try func(bundle) error) {
		for i := range 4 {
			wg.Go(func() {
				for {
					err := try([]bundle{b, other}[i%2])
					if fault.CodeOf(err) != "TemplateChanged" {
						return // done, or refused for good
					}
				}
			})
		}
	}
	again(func(b bundle) error { _, err := b.Create(ctx, "", partial("p", "x")); return err })
	again(func(b bundle) error { _, err := b.Delete(ctx, "", "p"); return err })
	again(func(b bundle) error { _, err := b.Create(ctx, "", html("user", "{{> p}}")); return err })
	again(func(b bundle) error { return b.rewrite(ctx, "t", "{{> p}}") })
	for i := range 8 {
		wg.Go(func() {
			for {
				got, err := b.Get(ctx, "", "t")
				if err != nil {
					t.Error(err)
					return
				}
				_, err = []bundle{b, other}[i%2].Update(ctx, "", "t", api.TemplatePatch{Sample: new(json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))), Version: got.Version})
				if err == nil {
					return
				}
				refused(t, "update", err, fault.Conflict, "TemplateChanged")
			}
		})
	}
	wg.Wait()
	v, err := b.Versions(ctx, "", "t")
	if err != nil || v.Version < 9 {
		t.Errorf("%d versions after 8 changes: %v", v.Version, err)
	}
	b.clock.Advance(time.Second)
	page, err := b.List(ctx, "", api.TemplateQuery{Kind: "template"})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range page.Templates {
		b.says(t, "", row.ID, "")
	}
}

func TestEveryProcessSeesAChangeWithinASecond(t *testing.T) {
	b := setup(t)
	other := process(t, b.url)
	b.create(t, partial("p", "1"), html("t", "{{> p}}"))
	if got := other.says(t, "", "t", ""); got != "1" {
		t.Errorf("a new one: %s", got)
	}
	b.create(t, html("new", "{{> p}}"))
	if got := other.says(t, "", "new", ""); got != "1" {
		t.Errorf("a new one, with the others remembered: %s", got)
	}
	if err := b.rewrite(t.Context(), "p", "2"); err != nil {
		t.Fatal(err)
	}
	if got := b.says(t, "", "t", ""); got != "2" {
		t.Errorf("the process that changed it: %s", got)
	}
	other.clock.Advance(time.Second)
	if got := other.says(t, "", "t", ""); got != "2" {
		t.Errorf("another process: %s", got)
	}
}

func TestFindingCostsNothingWhileItIsFresh(t *testing.T) {
	b := setup(t)
	b.create(t, partial("p", "1"), html("t", "{{> p}}"))
	b.says(t, "", "t", "de")
	commands := testredis.CountCommands(b.db)
	for range 100 {
		b.says(t, "", "t", "de")
	}
	if n := commands.Sent(); n != 0 {
		t.Errorf("%d commands", n)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	c := newCatalog("0", nil)
	for i := range 300 {
		e := &entry{ID: fmt.Sprint(i), Value: record{Kind: kindTemplate}}
		c.remember(e, "", Template{Source: mailtemplate.Source{HTML: strings.Repeat("x", 1<<20)}})
		if c.bytes > maxReady || len(c.ready) > 64 {
			t.Fatalf("%d bytes in %d", c.bytes, len(c.ready))
		}
		if _, ok := c.remembered(e, ""); !ok {
			t.Fatalf("%d is forgotten at once", i)
		}
	}
}

func TestStrict(t *testing.T) {
	for _, strict := range []bool{false, true} {
		t.Run(fmt.Sprint(strict), func(t *testing.T) {
			b := setup(t, func(o *Options) { o.Strict = strict })
			for missing, want := range map[string]bool{"": strict, "empty": false, "error": true} {
				req := html("t"+missing, "x")
				req.Missing = missing
				b.create(t, req)
				if found, err := b.Template(t.Context(), "", req.ID, ""); err != nil || found.Strict != want {
					t.Errorf("%q: %+v, %v", missing, found, err)
				}
			}
		})
	}
}

func TestEscapedOnly(t *testing.T) {
	b := setup(t, func(o *Options) { o.EscapedOnly = true })
	_, err := b.Create(t.Context(), "", html("t", "{{{x}}}"))
	refused(t, "a value as it is", err, fault.Unprocessable, "TemplateFault")
	b.create(t, html("t", "{{x}}"))
	if found, err := b.Template(t.Context(), "", "t", ""); err != nil || !found.Options.EscapedOnly {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestRedisAway(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	b := process(t, server.URL())
	b.create(t, html("t", "x"))
	b.clock.Advance(time.Minute)
	server.Kill()
	ctx := t.Context()
	for what, try := range map[string]func() error{
		"create":   func() error { _, err := b.Create(ctx, "", html("u", "x")); return err },
		"get":      func() error { _, err := b.Get(ctx, "", "t"); return err },
		"list":     func() error { _, err := b.List(ctx, "", api.TemplateQuery{}); return err },
		"update":   func() error { _, err := b.Update(ctx, "", "t", api.TemplatePatch{}); return err },
		"delete":   func() error { _, err := b.Delete(ctx, "", "t"); return err },
		"flush":    func() error { _, err := b.Flush(ctx, "shop"); return err },
		"versions": func() error { _, err := b.Versions(ctx, "", "t"); return err },
		"try": func() error {
			_, err := b.Try(ctx, "", api.TemplateTrial{TemplateDefinition: html("", "x").TemplateDefinition})
			return err
		},
		"use": func() error { _, err := b.Template(ctx, "", "t", ""); return err },
	} {
		if err := try(); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
