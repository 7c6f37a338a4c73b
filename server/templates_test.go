package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/outbox/templates/render"
)

func storedTemplate(id string) api.Template {
	return api.Template{
		TemplateHead: api.TemplateHead{ID: id, Name: "T1", Description: "d", Kind: "template", Version: 7},
		TemplateDefinition: api.TemplateDefinition{
			Format: "html", Content: api.TemplateContent{Subject: "s", PreviewText: "p", HTML: "h", Text: "t"},
			Locales: map[string]api.TemplateContent{"de": {Subject: "S"}},
			Layout:  "frame", InlineCSS: true, Missing: "error", Sample: json.RawMessage(`{"a":[1,{"b":null}]}`),
		},
	}
}

// storeTemplates stores the template t1 in its seventh version, its layout, and t2, which says what its
// params are.
func (w *world) storeTemplates(t *testing.T, bound string) {
	t.Helper()
	ctx, stored := t.Context(), w.parts.Templates
	html := func(text string) api.TemplateDefinition {
		return api.TemplateDefinition{Content: api.TemplateContent{Subject: "{{params.x}}", HTML: text}}
	}
	layout := api.TemplateDefinition{Content: api.TemplateContent{HTML: "<b>{{> @partial-block}}</b>"}}
	want := storedTemplate("t1")
	for _, req := range []api.TemplateRequest{
		{ID: "frame", Name: "frame", Kind: "layout", TemplateDefinition: layout},
		{ID: "t2", Name: "T2", TemplateDefinition: html("{{params.y}}")},
		{ID: "t1", Name: want.Name, Description: want.Description, TemplateDefinition: html("version 1")},
	} {
		if _, err := stored.Create(ctx, bound, req); err != nil {
			t.Fatal(err)
		}
	}
	for version := 2; version <= 7; version++ {
		d := html(fmt.Sprint("version ", version))
		if version == 7 {
			d = want.TemplateDefinition
		}
		patch := api.TemplatePatch{
			Format: &d.Format, Content: &d.Content, Locales: &d.Locales, Layout: &d.Layout, InlineCSS: &d.InlineCSS,
			Missing: &d.Missing, Sample: &d.Sample,
		}
		if _, err := stored.Update(ctx, bound, "t1", patch); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClientOfTemplates calls every method about templates once, and compares the results.
func TestClientOfTemplates(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.account(t, "acme")
	w.storeTemplates(t, "")
	ctx, c := t.Context(), w.client
	got, err := api.GetTemplate.Do(ctx, c, "t1")
	if diff := cmp.Diff(storedTemplate("t1"), got, cmpopts.IgnoreFields(api.TemplateHead{}, "Created",
		"Updated")); diff != "" || err != nil {
		t.Errorf("template changed on its way (-sent +received):\n%s%v", diff, err)
	}
	version, err := api.GetTemplateVersion.Do(ctx, c, "t1", 7)
	if diff := cmp.Diff(storedTemplate("t1").TemplateDefinition, version.TemplateDefinition); diff != "" ||
		err != nil || version.Version != 7 {
		t.Errorf("version changed on its way (-sent +received):\n%s%v", diff, err)
	}
	preview, err := api.PreviewTemplate.Do(ctx, c, api.TemplatePreviewRequest{
		Params: json.RawMessage(`{"x":12345678901234567890}`), To: &api.Address{Address: "a@example.net"}}, "t2")
	if err != nil || preview.Subject != "12345678901234567890" || len(preview.Missing) != 1 {
		t.Errorf("%+v, %v", preview, err)
	}
	acme := "acme"
	definition := storedTemplate("t1").TemplateDefinition
	for _, call := range []func() error{
		func() error {
			_, err := api.CreateTemplate.Do(ctx, c, api.TemplateRequest{ID: "t3", Account: &acme, Name: "T3",
				TemplateDefinition: definition})
			return err
		},
		func() error {
			page, err := api.ListTemplates.Do(ctx, c, api.TemplateQuery{Account: "acme", Kind: "template",
				Search: "t3", PageSize: 5})
			if err == nil && (len(page.Templates) != 1 || page.Templates[0].Layout != "frame") {
				err = fmt.Errorf("listed: %+v", page)
			}
			return err
		},
		func() error {
			_, err := api.UpdateTemplate.Do(ctx, c, api.TemplatePatch{Content: &definition.Content,
				Locales: &definition.Locales, Sample: &definition.Sample, Layout: new(""), Version: 1}, "t3")
			return err
		},
		func() error {
			all, err := api.ListTemplateVersions.Do(ctx, c, "t3")
			if err == nil && (all.Version != 2 || len(all.Versions) != 2) {
				err = fmt.Errorf("versions: %+v", all)
			}
			return err
		},
		func() error {
			_, err := api.RestoreTemplate.Do(ctx, c, api.TemplateRestore{Version: 1}, "t3")
			return err
		},
		func() error {
			_, err := api.TryTemplate.Do(ctx, c, api.TemplateTrial{TemplateDefinition: definition, Locale: "de"})
			return err
		},
		func() error { _, err := api.DeleteTemplate.Do(ctx, c, "t3"); return err },
		func() error {
			_, err := api.FlushTemplates.Do(ctx, c, api.FlushQuery{Force: true}, "acme")
			return err
		},
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
}

// TestTemplatesOfABoundToken: a token bound to an account sees, makes and changes what is its own. What is
// another's does not exist.
func TestTemplatesOfABoundToken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.storeTemplates(t, "acme")
	text := api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}
	for id, account := range map[string]string{"theirs": "zeta", "shared": ""} {
		if _, err := w.parts.Templates.Create(t.Context(), account, api.TemplateRequest{ID: id, Name: id,
			TemplateDefinition: text}); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		method, path, body string
		status             int
		want               string // in the answer
	}{
		{"POST", "/v1/templates/template", `{"name":"n","content":{"text":"x"}}`, 200, `"account":"acme"`},
		{"POST", "/v1/templates/template", `{"name":"n","account":"zeta","content":{"text":"x"}}`, 403, ""},
		{"GET", "/v1/templates", "", 200, `"total":5`}, // frame, t1, t2, n and shared
		{"GET", "/v1/templates?account=acme", "", 200, `"total":4`},
		{"GET", "/v1/templates?account=zeta", "", 403, ""},
		{"GET", "/v1/templates/template/t1", "", 200, `"name":"T1"`},
		{"GET", "/v1/templates/template/shared", "", 200, `"name":"shared"`},
		{"GET", "/v1/templates/template/theirs", "", 404, ""},
		{"PUT", "/v1/templates/template/t1", `{"name":"n"}`, 200, `"updated":true`},
		{"PUT", "/v1/templates/template/theirs", `{"name":"n"}`, 404, ""},
		{"GET", "/v1/templates/template/t1/versions", "", 200, `"version":7`},
		{"GET", "/v1/templates/template/theirs/versions", "", 404, ""},
		{"GET", "/v1/templates/template/t1/versions/1", "", 200, "version 1"},
		{"GET", "/v1/templates/template/theirs/versions/1", "", 404, ""},
		{"GET", "/v1/templates/template/t1/versions/x", "", 400, ""},
		{"POST", "/v1/templates/template/t1/restore", `{"version":1}`, 200, `"version":8`},
		{"POST", "/v1/templates/template/theirs/restore", `{"version":1}`, 404, ""},
		{"POST", "/v1/templates/template/t1/render", "", 200, "version 1"},
		{"POST", "/v1/templates/template/theirs/render", "", 404, ""},
		{"POST", "/v1/templates/render", `{"content":{"text":"x"}}`, 200, `"text":"x"`},
		{"DELETE", "/v1/templates/template/t1", "", 200, `"deleted":true`},
		{"DELETE", "/v1/templates/template/theirs", "", 404, ""},
		{"DELETE", "/v1/templates/account/acme", "", 400, ""},
		{"DELETE", "/v1/templates/account/zeta?force=true", "", 403, ""},
		{"DELETE", "/v1/templates/account/acme?force=true", "", 200, `"deleted":3`},
	} {
		if got := w.do(t, tc.method, tc.path, boundToken, tc.body); got.status != tc.status ||
			!strings.Contains(got.body, tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, got.status, got.body)
		}
	}
	if _, err := w.parts.Templates.Get(t.Context(), "", "theirs"); err != nil {
		t.Errorf("another's: %v", err)
	}
}

func TestTemplateOfAnAccount(t *testing.T) {
	t.Parallel()
	w := setup(t)
	account := "nobody"
	_, err := api.CreateTemplate.Do(t.Context(), w.client, api.TemplateRequest{Account: &account, Name: "n",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
	if !refused(err, http.StatusNotFound) {
		t.Errorf("of an account that is not there: %v", err)
	}
	account = "acme"
	if _, err := api.CreateAccount.Do(t.Context(), w.client,
		api.Account{Account: account, Email: "a@example.com", SMTP: &api.SMTPServer{Host: "relay.example",
			Port: 25}}); err != nil {
		t.Fatal(err)
	}
	created, err := api.CreateTemplate.Do(t.Context(), w.client, api.TemplateRequest{Account: &account,
		Name: "n", TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.DeleteAccount.Do(t.Context(), w.client, account); err != nil {
		t.Fatal(err)
	}
	if _, err := api.GetTemplate.Do(t.Context(), w.client, created.ID); !refused(err, http.StatusNotFound) {
		t.Errorf("it outlived its account: %v", err)
	}
}

// TestLargeTemplate: a template may be as large as templates may be, however JSON writes it.
func TestLargeTemplate(t *testing.T) {
	t.Parallel()
	w := setup(t)
	text := strings.Repeat("\u2028", 80_000) // 240 KB, which take 480 KB in JSON
	content := api.TemplateContent{HTML: text, Text: text}
	if _, err := api.CreateTemplate.Do(t.Context(), w.client, api.TemplateRequest{ID: "t", Name: "n",
		TemplateDefinition: api.TemplateDefinition{Content: content}}); err != nil {
		t.Fatal(err)
	}
	got, err := api.GetTemplate.Do(t.Context(), w.client, "t")
	if err != nil || got.Content != content {
		t.Errorf("%d bytes, %v", len(got.Content.HTML), err)
	}
	// A body that is refused unread is not sent, or the answer might be lost in the reset connection.
	body := `{"name":"n","content":{"text":"` + strings.Repeat("x", 5<<20) + `"}}`
	if got := w.do(t, "POST", "/v1/templates/template", adminToken, body, "Expect",
		"100-continue"); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestHostileTemplates: what would hang or crash other engines is answered 422, as a preview and when it is
// stored and previewed.
func TestHostileTemplates(t *testing.T) {
	w := setup(t)
	ctx := t.Context()
	store := func(req api.TemplateRequest) {
		t.Helper()
		if _, err := api.CreateTemplate.Do(ctx, w.client, req); err != nil {
			t.Fatal(err)
		}
	}
	html := func(text string) api.TemplateDefinition {
		return api.TemplateDefinition{Content: api.TemplateContent{HTML: text}}
	}
	store(api.TemplateRequest{ID: "ping", Name: "ping", Kind: "partial", TemplateDefinition: html("x")})
	store(api.TemplateRequest{ID: "pong", Name: "pong", Kind: "partial",
		TemplateDefinition: html("{{#if params}}{{> ping}}{{> ping}}{{/if}}")})
	circle := html("{{#if params}}{{> pong}}{{> pong}}{{/if}}")
	if _, err := api.UpdateTemplate.Do(ctx, w.client, api.TemplatePatch{Content: &circle.Content},
		"ping"); err != nil {
		t.Fatal(err)
	}
	circle = html("{{> pong}}")
	if _, err := api.UpdateTemplate.Do(ctx, w.client, api.TemplatePatch{Content: &circle.Content},
		"ping"); err != nil {
		t.Fatal(err) // pong asks before it continues
	}
	always := html("{{> ping}}")
	_, err := api.UpdateTemplate.Do(ctx, w.client, api.TemplatePatch{Content: &always.Content}, "pong")
	if !refused(err, http.StatusUnprocessableEntity) {
		t.Errorf("a circle that can't end: %v", err)
	}
	params := json.RawMessage(`{"l":[` + strings.Repeat("1,", 999) + `1]}`)
	for name, text := range map[string]string{
		"partials in a circle": "{{> ping}}",
		"1e9 turns":            "{{#each params.l}}{{#each @root.params.l}}{{#each @root.params.l}}x{{/each}}{{/each}}{{/each}}",
		"a huge output":        "{{#each params.l}}" + strings.Repeat("x", 100_000) + "{{/each}}",
		"deep nesting":         strings.Repeat("{{#if a}}", 20_000),
	} {
		start := testkit.CPUUsed(t)
		_, err := api.TryTemplate.Do(ctx, w.client, api.TemplateTrial{TemplateDefinition: html(text),
			Params: params})
		if took := testkit.CPUUsed(t) - start; !refused(err, http.StatusUnprocessableEntity) ||
			took > 20*time.Second {
			t.Errorf("%s: %v after %s", name, err, took)
		}
	}
	if _, err := api.GetHealth.Do(ctx, w.client); err != nil {
		t.Error(err)
	}
}

// noSenders knows nobody.
type noSenders struct{}

func (noSenders) Sender(context.Context, string) (render.Person, error) {
	return render.Person{}, nil
}

func (noSenders) ServiceURL() string { return "" }
