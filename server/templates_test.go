package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testcpu"
	"github.com/postroom/postroom/templates/render"
)

// fakeTemplates answers for the store of templates.
type fakeTemplates struct{ *parts }

func (p fakeTemplates) Create(_ context.Context, bound string, req api.TemplateRequest) (api.TemplateCreated, error) {
	return api.TemplateCreated{Created: true, Account: req.Account, ID: "t1", Version: 1}, p.asked("Templates.Create " + bound)
}

func (p fakeTemplates) List(_ context.Context, bound string, q api.TemplateQuery) (api.TemplatePage, error) {
	row := api.TemplateRow{TemplateHead: storedTemplate("t1").TemplateHead, Format: "html", Locales: []string{"de"}, Layout: "frame"}
	return api.TemplatePage{Account: &q.Account, Total: 1, Page: q.Page, Pages: 1, Templates: []api.TemplateRow{row}}, p.asked("Templates.List " + bound + " " + q.Account + q.Kind + q.Search)
}

func (p fakeTemplates) Get(_ context.Context, bound, id string) (api.Template, error) {
	return storedTemplate(id), p.asked("Templates.Get " + bound)
}

func (p fakeTemplates) Update(_ context.Context, bound, id string, _ api.TemplatePatch) (api.TemplateUpdated, error) {
	return api.TemplateUpdated{Updated: true, ID: id, Version: 2}, p.asked("Templates.Update " + bound)
}

func (p fakeTemplates) Delete(_ context.Context, bound, id string) (api.TemplateDeleted, error) {
	return api.TemplateDeleted{Deleted: true, ID: id}, p.asked("Templates.Delete " + bound)
}

func (p fakeTemplates) Flush(_ context.Context, account string) (int, error) {
	return 3, p.asked("Templates.Flush " + account)
}

func (p fakeTemplates) Versions(_ context.Context, bound, id string) (api.TemplateVersions, error) {
	return api.TemplateVersions{ID: id, Version: 2, Versions: []api.TemplateVersionRow{{Version: 2, Created: at(2), Size: 7, Restored: 1}}}, p.asked("Templates.Versions " + bound)
}

func (p fakeTemplates) Version(_ context.Context, bound, id string, number int) (api.TemplateVersion, error) {
	row := api.TemplateVersionRow{Version: number, Created: at(2), Size: 7}
	return api.TemplateVersion{ID: id, TemplateVersionRow: row, TemplateDefinition: storedTemplate(id).TemplateDefinition}, p.asked("Templates.Version " + bound)
}

func (p fakeTemplates) Restore(_ context.Context, bound, id string, _ int) (api.TemplateUpdated, error) {
	return api.TemplateUpdated{Updated: true, ID: id, Version: 3}, p.asked("Templates.Restore " + bound)
}

func (p fakeTemplates) Preview(_ context.Context, bound, _ string, req api.TemplatePreviewRequest) (api.TemplatePreview, error) {
	missing := []api.TemplateMissing{{Name: "params.x", Part: "html", Partial: "row", Line: 1, Column: 2}}
	return api.TemplatePreview{Subject: string(req.Params), Missing: missing, Variables: []string{"params.x"}, Version: 2}, p.asked("Templates.Preview " + bound)
}

func (p fakeTemplates) Try(_ context.Context, bound string, req api.TemplateTrial) (api.TemplatePreview, error) {
	return api.TemplatePreview{Subject: req.Content.Subject, Missing: []api.TemplateMissing{}, Variables: []string{}}, p.asked("Templates.Try " + bound)
}

func at(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

func storedTemplate(id string) api.Template {
	return api.Template{
		TemplateHead: api.TemplateHead{ID: id, Name: "T1", Description: "d", Kind: "template", Version: 2, Created: at(1), Updated: at(2)},
		TemplateDefinition: api.TemplateDefinition{
			Format: "html", Content: api.TemplateContent{Subject: "s", PreviewText: "p", HTML: "h", Text: "t"}, Locales: map[string]api.TemplateContent{"de": {Subject: "S"}},
			Layout: "frame", InlineCSS: true, Missing: "error", Sample: json.RawMessage(`{"a":[1,{"b":null}]}`),
		},
	}
}

// TestClientOfTemplates calls every method about templates once, and compares what comes out at the other end.
func TestClientOfTemplates(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, c := t.Context(), w.client
	got, err := api.GetTemplate.Do(ctx, c, "t1")
	if diff := cmp.Diff(storedTemplate("t1"), got); diff != "" || err != nil {
		t.Errorf("template changed on its way (-sent +received):\n%s%v", diff, err)
	}
	version, err := api.GetTemplateVersion.Do(ctx, c, "t1", 7)
	if diff := cmp.Diff(storedTemplate("t1").TemplateDefinition, version.TemplateDefinition); diff != "" || err != nil || version.Version != 7 {
		t.Errorf("version changed on its way (-sent +received):\n%s%v", diff, err)
	}
	preview, err := api.PreviewTemplate.Do(ctx, c, api.TemplatePreviewRequest{Params: json.RawMessage(`{"x":12345678901234567890}`), To: &api.Address{Address: "a@example.net"}}, "t1")
	if err != nil || preview.Subject != `{"x":12345678901234567890}` || len(preview.Missing) != 1 {
		t.Errorf("%+v, %v", preview, err)
	}
	acme := "acme"
	definition := storedTemplate("t1").TemplateDefinition
	for name, call := range map[string]func() error{
		"Create": func() error {
			_, err := api.CreateTemplate.Do(ctx, c, api.TemplateRequest{ID: "t1", Account: &acme, Name: "T1", TemplateDefinition: definition})
			return err
		},
		"List": func() error {
			_, err := api.ListTemplates.Do(ctx, c, api.TemplateQuery{Account: "acme", Kind: "partial", Search: "x", Page: 1, PageSize: 5})
			return err
		},
		"Update": func() error {
			_, err := api.UpdateTemplate.Do(ctx, c, api.TemplatePatch{Content: &definition.Content, Locales: &definition.Locales, Sample: &definition.Sample, Layout: new(""), Version: 2}, "t1")
			return err
		},
		"Delete":   func() error { _, err := api.DeleteTemplate.Do(ctx, c, "t1"); return err },
		"Flush":    func() error { _, err := api.FlushTemplates.Do(ctx, c, api.FlushQuery{Force: true}, "acme"); return err },
		"Versions": func() error { _, err := api.ListTemplateVersions.Do(ctx, c, "t1"); return err },
		"Restore": func() error {
			_, err := api.RestoreTemplate.Do(ctx, c, api.TemplateRestore{Version: 1}, "t1")
			return err
		},
		"Try": func() error {
			_, err := api.TryTemplate.Do(ctx, c, api.TemplateTrial{TemplateDefinition: definition, Locale: "de"})
			return err
		},
	} {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTemplatesOfABoundToken: whoever is confined to an account is named to the store, and refused what is not theirs.
func TestTemplatesOfABoundToken(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, tc := range []struct {
		method, path, body string
		status             int
		asked              string
	}{
		{"POST", "/v1/templates/template", `{"name":"n","content":{"text":"x"}}`, 200, "Templates.Create acme"},
		{"GET", "/v1/templates", "", 200, "Templates.List acme "},
		{"GET", "/v1/templates?account=acme", "", 200, "Templates.List acme acme"},
		{"GET", "/v1/templates?account=zeta", "", 403, ""},
		{"GET", "/v1/templates/template/t1", "", 200, "Templates.Get acme"},
		{"PUT", "/v1/templates/template/t1", `{"name":"n"}`, 200, "Templates.Update acme"},
		{"DELETE", "/v1/templates/template/t1", "", 200, "Templates.Delete acme"},
		{"GET", "/v1/templates/template/t1/versions", "", 200, "Templates.Versions acme"},
		{"GET", "/v1/templates/template/t1/versions/1", "", 200, "Templates.Version acme"},
		{"GET", "/v1/templates/template/t1/versions/x", "", 400, ""},
		{"POST", "/v1/templates/template/t1/restore", `{"version":1}`, 200, "Templates.Restore acme"},
		{"POST", "/v1/templates/template/t1/render", "", 200, "Templates.Preview acme"},
		{"POST", "/v1/templates/render", `{"content":{"text":"x"}}`, 200, "Templates.Try acme"},
		{"DELETE", "/v1/templates/account/acme?force=true", "", 200, "Templates.Flush acme"},
		{"DELETE", "/v1/templates/account/acme", "", 400, ""},
		{"DELETE", "/v1/templates/account/zeta?force=true", "", 403, ""},
	} {
		w.parts.mu.Lock()
		w.parts.calls = nil
		w.parts.mu.Unlock()
		got := w.do(t, tc.method, tc.path, boundToken, tc.body)
		if asked := strings.Join(w.parts.calls, ", "); got.status != tc.status || asked != tc.asked {
			t.Errorf("%s %s: %d %s; asked %q, want %q", tc.method, tc.path, got.status, got.body, asked, tc.asked)
		}
	}
}

func TestTemplateOfAnAccount(t *testing.T) {
	t.Parallel()
	w := setupReal(t)
	account := "nobody"
	_, err := api.CreateTemplate.Do(t.Context(), w.client, api.TemplateRequest{Account: &account, Name: "n", TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
	if !refused(err, http.StatusNotFound) {
		t.Errorf("of an account that is not there: %v", err)
	}
	account = "acme"
	if _, err := api.CreateAccount.Do(t.Context(), w.client, api.Account{Account: account, Email: "a@example.com", SMTP: &api.SMTPServer{Host: "relay.example", Port: 25}}); err != nil {
		t.Fatal(err)
	}
	created, err := api.CreateTemplate.Do(t.Context(), w.client, api.TemplateRequest{Account: &account, Name: "n", TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Text: "x"}}})
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
	w := setupReal(t)
	text := strings.Repeat("\u2028", 80_000) // 240 KB, of which JSON makes 480 KB
	content := api.TemplateContent{HTML: text, Text: text}
	if _, err := api.CreateTemplate.Do(t.Context(), w.client, api.TemplateRequest{ID: "t", Name: "n", TemplateDefinition: api.TemplateDefinition{Content: content}}); err != nil {
		t.Fatal(err)
	}
	got, err := api.GetTemplate.Do(t.Context(), w.client, "t")
	if err != nil || got.Content != content {
		t.Errorf("%d bytes, %v", len(got.Content.HTML), err)
	}
	// A body that is refused unread is not sent, or the answer might be lost in the reset connection.
	body := `{"name":"n","content":{"text":"` + strings.Repeat("x", 5<<20) + `"}}`
	if got := w.do(t, "POST", "/v1/templates/template", adminToken, body, "Expect", "100-continue"); got.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestHostileTemplates: what would hang or crash other engines is answered 422, as a preview and when it is stored and previewed.
func TestHostileTemplates(t *testing.T) {
	w := setupReal(t)
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
	store(api.TemplateRequest{ID: "pong", Name: "pong", Kind: "partial", TemplateDefinition: html("{{#if params}}{{> ping}}{{> ping}}{{/if}}")})
	circle := html("{{#if params}}{{> pong}}{{> pong}}{{/if}}")
	if _, err := api.UpdateTemplate.Do(ctx, w.client, api.TemplatePatch{Content: &circle.Content}, "ping"); err != nil {
		t.Fatal(err)
	}
	circle = html("{{> pong}}")
	if _, err := api.UpdateTemplate.Do(ctx, w.client, api.TemplatePatch{Content: &circle.Content}, "ping"); err != nil {
		t.Fatal(err) // pong asks before it goes on
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
		start := testcpu.Used(t)
		_, err := api.TryTemplate.Do(ctx, w.client, api.TemplateTrial{TemplateDefinition: html(text), Params: params})
		if took := testcpu.Used(t) - start; !refused(err, http.StatusUnprocessableEntity) || took > 20*time.Second {
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
