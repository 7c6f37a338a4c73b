package templates

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
)

func TestPreview(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, partial("row", "<i>{{name}}{{oops}}</i>"),
		of("layout", "frame", "<body>{{> @partial-block}}</body>"))
	req := api.TemplateRequest{ID: "t", Name: "t", TemplateDefinition: definition{
		Content: api.TemplateContent{
			Subject: "{{params.n}} for {{rcpt.name}}", PreviewText: "{{account.name}}",
			HTML: "<p>{{params.n}} {{gone}}</p>\n{{> row params}}",
			Text: "{{date params.at \"YYYY-MM-DD HH:mm\"}} {{params.big}} {{service.url}} {{account.email}} {{rcpt.address}}",
		},
		Locales: map[string]api.TemplateContent{"de": {Subject: "{{number params.price decimals=2}}"}},
		Layout:  "frame", Sample: json.RawMessage(
			`{"n": 1, "name": "<S>", "at": "2026-01-01T00:30:00Z", "big": 12345678901234567890, "price": 1234.5}`),
	}}
	b.create(t, req)
	want := api.TemplatePreview{
		Subject: "1 for Ann", PreviewText: "Shop", HTML: "<body><p>1 </p>\n<i>&lt;S&gt;</i></body>",
		Text:    "2025-12-31 19:30 12345678901234567890 https://mail.example.com shop@example.com ann@example.net",
		Version: 1,
		Missing: []api.TemplateMissing{{Name: "gone", Part: "html", Line: 1, Column: 19},
			{Name: "oops", Part: "html", Partial: "row", Line: 1, Column: 14}},
		Variables: []string{
			"params.n", "rcpt.name", "account.name", "gone", "params", "params.name", "params.oops", "params.at",
			"params.big", "service.url", "account.email", "rcpt.address",
		},
	}
	to := &api.Address{Name: "Ann", Address: "ann@example.net"}
	got, err := b.Preview(ctx, "", "t", api.TemplatePreviewRequest{TZ: "America/New_York", To: to})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("(-want +got):\n%s%v", diff, err)
	}
	got, err = b.Preview(ctx, "", "t", api.TemplatePreviewRequest{Locale: "de-CH",
		Params: json.RawMessage(`{"price": 2000}`), Account: "blog"})
	if err != nil || got.Locale != "de" || got.Subject != "2'000.00" || got.PreviewText != "Blog" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := b.rewrite(ctx, "t", "new"); err != nil {
		t.Fatal(err)
	}
	if got, err = b.Preview(ctx, "", "t", api.TemplatePreviewRequest{Version: 1}); err != nil ||
		got.Version != 1 || got.PreviewText != "Shop" {
		t.Errorf("an earlier version: %+v, %v", got, err)
	}
	if got, err = b.Preview(ctx, "", "frame", api.TemplatePreviewRequest{}); err != nil ||
		got.HTML != "<body><p>…</p></body>" {
		t.Errorf("a layout: %+v, %v", got, err)
	}
	if got, err = b.Preview(ctx, "", "row", api.TemplatePreviewRequest{}); err != nil || got.HTML != "<i></i>" ||
		len(got.Missing) != 2 {
		t.Errorf("a partial: %+v, %v", got, err)
	}
	for what, req := range map[string]api.TemplatePreviewRequest{"tz": {TZ: "Mars/Olympus"},
		"tz ": {TZ: "Local"}, "tz  ": {TZ: "../../etc/passwd"}, "params": {Params: json.RawMessage(`[]`)}} {
		_, err := b.Preview(ctx, "", "t", req)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(fieldsOf(t, err)[0], strings.TrimSpace(what)+": ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = b.Preview(ctx, "", "t", api.TemplatePreviewRequest{Account: "nobody"})
	refused(t, "an unknown account", err, fault.NotFound, "AccountNotFound")
	_, err = b.Preview(ctx, "", "t", api.TemplatePreviewRequest{Version: 9})
	refused(t, "an unknown version", err, fault.NotFound, "TemplateVersionNotFound")
}

func TestTry(t *testing.T) {
	b := setup(t)
	b.create(t, partial("p", "everybody's"), in("shop", partial("p", "shop's")),
		of("layout", "frame", "[{{> @partial-block}}]"))
	try := func(account, layout, text string) (api.TemplatePreview, error) {
		return b.Try(t.Context(), "", api.TemplateTrial{Account: account, TemplateDefinition: definition{
			Layout: layout, Content: api.TemplateContent{HTML: text}, Sample: json.RawMessage(`{"a":"<a>"}`),
		}})
	}
	for account, want := range map[string]string{"": "[&lt;a&gt; everybody's]", "shop": "[&lt;a&gt; shop's]"} {
		if got, err := try(account, "frame", "{{params.a}} {{> p}}"); err != nil || got.HTML != want ||
			got.Version != 0 {
			t.Errorf("%q: %+v, %v", account, got, err)
		}
	}
	_, err := try("", "none", "{{> nobody}}")
	refused(t, "faults", err, fault.Unprocessable, "TemplateFault")
	if got := fieldsOf(t, err); len(got) != 2 || !strings.HasPrefix(got[0], "layout: ") ||
		!strings.HasPrefix(got[1], "content.html: ") {
		t.Errorf("%q", got)
	}
	_, err = try("", "", "")
	refused(t, "nothing", err, fault.Invalid, "")
	if page, err := b.List(t.Context(), "", api.TemplateQuery{}); err != nil || page.Total != 3 {
		t.Errorf("something was stored: %+v, %v", page, err)
	}
}

// TestHostileTemplatesEndSoon: none hangs, crashes or exhausts the process.
func TestHostileTemplatesEndSoon(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	list := json.RawMessage(`{"a":[` + strings.Repeat("1,", 999) + `1]}`)
	b.create(t, partial("ping", "x"), partial("pong", "{{#if true}}{{> ping}}{{/if}}"))
	if err := b.rewrite(ctx, "ping", "{{#if true}}{{> pong}}{{/if}}"); err != nil { // which might be meant
		t.Fatal(err)
	}
	for i := range 14 {
		text := "x"
		if i > 0 {
			text = strings.Repeat(fmt.Sprintf("{{> bomb%c}}", 'a'+i-1), 10)
		}
		b.create(t, partial(fmt.Sprintf("bomb%c", 'a'+i), text))
	}
	each := func(n int) string {
		return strings.Repeat("{{#each params.a}}", 1) + strings.Repeat("{{#each @root.params.a}}", n-1) + "x" +
			strings.Repeat("{{/each}}", n)
	}
	for name, d := range map[string]definition{
		"two partials that include each other": {
			Content: api.TemplateContent{HTML: "{{#each params.a}}{{> ping}}{{/each}}"}},
		"partials that multiply": {Content: api.TemplateContent{HTML: "{{> bombn}}"}},
		"a billion turns":        {Content: api.TemplateContent{HTML: each(3)}},
		"a billion turns in each part": {Content: api.TemplateContent{Subject: each(3),
			PreviewText: each(3), HTML: each(3), Text: each(3)}},
		"a large output": {
			Content: api.TemplateContent{HTML: "{{#each params.a}}" + strings.Repeat("x", 200<<10) + "{{/each}}"}},
		"deep nesting": {
			Content: api.TemplateContent{HTML: strings.Repeat("{{#if a}}", 20_000)}},
		"deep expressions": {
			Content: api.TemplateContent{HTML: "{{" + strings.Repeat("not (", 20_000) + "}}"}},
		"Markdown in quotes": {Format: "markdown", Content: api.TemplateContent{
			HTML: strings.Repeat(">", 60_000)}},
		"style sheets": {InlineCSS: true, Content: api.TemplateContent{
			HTML: "<style>" + strings.Repeat("a *,b>c,:not(d){color:red}", 9_000) + "</style>" +
				strings.Repeat("<a><b><c>", 1_500)}},
	} {
		t.Run(name, func(t *testing.T) {
			d.Sample = list
			start := testkit.CPUUsed(t)
			p, err := b.Try(ctx, "", api.TemplateTrial{TemplateDefinition: d})
			refused(t, "preview", err, fault.Unprocessable, "TemplateFault")
			if took := testkit.CPUUsed(t) - start; took > 20*time.Second { // 3 s on an idle machine
				t.Errorf("it took %s: %d bytes, %v", took, len(p.HTML), err)
			} else {
				t.Logf("%s: %v", took, err)
			}
		})
	}
}
