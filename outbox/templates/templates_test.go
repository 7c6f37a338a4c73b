package templates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/templates/render"
)

func TestMain(m *testing.M) { os.Exit(testredis.Main(m)) }

// bundle is a store on a Redis of its own, with a clock that the test moves.
type bundle struct {
	*Templates
	db    *redisdb.DB
	clock *testkit.Clock
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
	b := bundle{db: testredis.Connect(t, redisdb.Options{URL: url}), clock: testkit.NewClock(), url: url}
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

func (people) Sender(_ context.Context, account string) (render.Person, error) {
	switch account {
	case "", "shop":
		return render.Person{Name: "Shop", Address: "shop@example.com"}, nil
	case "blog":
		return render.Person{Name: "Blog", Address: "blog@example.com"}, nil
	}
	return render.Person{}, fault.New(fault.NotFound, "AccountNotFound", "There is no such account")
}

func (people) ServiceURL() string { return "https://mail.example.com" }

// html is a template; only its html matters.
func html(id, text string) api.TemplateRequest { return of("template", id, text) }

func partial(name, text string) api.TemplateRequest { return of("partial", name, text) }

func of(kind, id, text string) api.TemplateRequest {
	return api.TemplateRequest{ID: id, Name: id, Kind: kind, TemplateDefinition: definition{
		Content: api.TemplateContent{HTML: text}}}
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
	read, err := render.Parse(found.Source, found.Options)
	if err != nil {
		t.Fatal(err)
	}
	mail, err := read.Render(t.Context(), render.Input{Data: map[string]any{"x": "<x>"}})
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

// fieldsOf lists the fields that an error names, with their errors.
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
		Content: api.TemplateContent{Subject: "Hi {{params.name}}", HTML: "<p>{{params.name}}</p>",
			PreviewText: "p"}, Sample: json.RawMessage(`{"name": "\u003cAnn\u0026\\u003c>"}`),
	}}
	created, err := b.Create(ctx, "", req)
	if err != nil || !created.Created || created.Account != nil || len(created.ID) != 20 ||
		created.Version != 1 {
		t.Fatalf("%+v, %v", created, err)
	}
	head := api.TemplateHead{ID: created.ID, Name: "Order", Description: "d", Kind: "template", Version: 1,
		Created: testkit.ClockStart, Updated: testkit.ClockStart}
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
		{"the same again", api.TemplatePatch{Content: &req.Content, Format: new("html"),
			Locales: &map[string]api.TemplateContent{}}, 1},
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
	if err != nil || got.Name != "Orders" || got.Description != "d" ||
		got.Content != (api.TemplateContent{Text: "only text"}) || got.Sample != nil ||
		got.Missing != "error" || !got.Updated.Equal(b.clock.Now()) || !got.Created.Equal(testkit.ClockStart) {
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
		"preview": func() error {
			_, err := b.Preview(ctx, "", created.ID, api.TemplatePreviewRequest{})
			return err
		},
		"use":    func() error { _, err := b.Template(ctx, "", created.ID, ""); return err },
		"odd id": func() error { _, err := b.Get(ctx, "", created.ID+":state"); return err },
	} {
		refused(t, what+" what is deleted", try(), fault.NotFound, "TemplateNotFound")
	}
	if keys := b.db.Client().Keys(ctx, "*").Val(); !cmp.Equal(keys, []string{b.store.VersionKey()}) {
		t.Errorf("left behind: %q", keys)
	}
}

func TestNamesAndNumbersAreBounded(t *testing.T) {
	b := setup(t, func(o *Options) { o.Max = 3 })
	b.create(t, partial("p", "1"), in("shop", partial("p", "2")))
	_, err := b.Create(t.Context(), "", api.TemplateRequest{ID: "other", Name: "p", Kind: "partial",
		TemplateDefinition: definition{Content: api.TemplateContent{HTML: "x"}}})
	refused(t, "another partial of that name", err, fault.Conflict, "TemplateExists")
	_, err = b.Create(t.Context(), "", html("p", "x"))
	refused(t, "another template of that id", err, fault.Conflict, "TemplateExists")
	_, err = b.Create(t.Context(), "", html("new", "x"))
	refused(t, "the id of a page", err, fault.Invalid, "")
	b.create(t, html("a", "x"))
	_, err = b.Create(t.Context(), "", html("b", "x"))
	refused(t, "one too many", err, fault.Conflict, "TooManyTemplates")
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
			if err != nil || p.Total != test.total || p.Pages != test.pages || len(p.Templates) != test.rows ||
				p.Templates == nil || test.rows > 0 && p.Templates[0].ID != test.first {
				t.Errorf("%+v, %v", p, err)
			}
		})
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
