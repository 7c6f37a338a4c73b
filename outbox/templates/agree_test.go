package templates

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

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
			Locales: map[string]api.TemplateContent{"de": {Subject: "{{/if}}", Text: "{{> ok}}"},
				"fr": {HTML: "{{> ok}}{{#each x}}"}},
		}}, fault.Unprocessable, []string{
			"content.html: line 1, column 1: there is no partial \"nobody\"", "content.subject: ", "content.text: ",
			"locales.de.subject: ", "locales.fr.html: ",
		}},
		{"fields", api.TemplateRequest{Name: " ", Kind: "thing", TemplateDefinition: definition{
			Format: "latex", Missing: "maybe", Sample: json.RawMessage(`[]`), Layout: "frame",
			Locales: map[string]api.TemplateContent{"german!": {Text: "x"}, "de": {}, "DE": {Text: "x"}},
		}}, fault.Invalid, []string{
			"kind: must be", "format: must be html or markdown", "layout: is for templates",
			"missing: must be empty or error", "content: must have a subject",
			"locales.de: is there twice", "locales.de: must have", "locales.german!: must be a locale",
			"sample: must be of type object",
		}},
		{"mjml", api.TemplateRequest{Name: "n", TemplateDefinition: definition{Format: "mjml",
			Content: api.TemplateContent{HTML: "<mjml></mjml>"}}}, fault.Invalid,
			[]string{"format: must be html or markdown. Compile MJML with npx mjml"}},
		{"fields and syntax", api.TemplateRequest{Name: "n", TemplateDefinition: definition{
			Missing: "x", Content: api.TemplateContent{HTML: "{{"}}}, fault.Invalid,
			[]string{"missing: ", "content.html: "}},
		{"no such layout", api.TemplateRequest{Name: "n", TemplateDefinition: definition{
			Layout: "ok", Content: api.TemplateContent{HTML: "x"}}}, fault.Unprocessable,
			[]string{`layout: there is no layout "ok"`}},
		{"a partial in the other format", api.TemplateRequest{Name: "n", TemplateDefinition: definition{
			Content: api.TemplateContent{HTML: "{{> md}}"}}}, fault.Unprocessable,
			[]string{`content.html: the partial "md" is written in markdown, this in html`}},
		{"a layout without a place", of("layout", "l", "<b></b>"), fault.Invalid,
			[]string{"content.html: must contain {{> @partial-block}}"}},
		{"a layout with a subject", api.TemplateRequest{Name: "l", Kind: "layout", TemplateDefinition: definition{
			Format: "markdown", Content: api.TemplateContent{Subject: "x", Text: "y"}}}, fault.Invalid,
			[]string{"format: must be html for a layout", "content.subject: is only for templates", "content.text: is only for templates",
				"content.html: is required"}},
		{"the name of a partial", partial("a b", "x"), fault.Invalid, []string{"name: of a partial"}},
		{"too large", html("n", strings.Repeat("x", maxPart+1)), fault.Invalid,
			[]string{"content.html: must not be larger than 256 KB"}},
		{"too large together", api.TemplateRequest{Name: "n", TemplateDefinition: definition{
			Content: api.TemplateContent{Text: strings.Repeat("x", maxPart)}, Locales: map[string]api.TemplateContent{
				"de": {Text: strings.Repeat("x", maxPart)}, "fr": {Text: strings.Repeat("x", maxPart)},
				"it": {Text: strings.Repeat("x", maxPart)}, "es": {Text: "x"},
			}}}, fault.Invalid, []string{"content: must not be larger than 1 MB"}},
		{"a partial that includes itself", partial("me", "{{> me}}"), fault.Unprocessable,
			[]string{"content.html: "}},
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

func TestAChangeThatWouldBreakOthersIsRefused(t *testing.T) {
	b := setup(t)
	ctx := t.Context()
	b.create(t, partial("inner", "1"), partial("outer", "{{> inner}}"), html("user", "{{> outer}}"),
		of("layout", "frame", `{{> @partial-block}}{{#> title}}none{{/title}}`))
	framed := html("framed", `{{#*inline "title"}}{{> inner}}{{/inline}}x`)
	framed.Layout = "frame"
	b.create(t, framed)
	for what, try := range map[string]func() error{
		"a partial that a partial uses":  func() error { _, err := b.Delete(ctx, "", "inner"); return err },
		"a partial that a template uses": func() error { _, err := b.Delete(ctx, "", "outer"); return err },
		"a layout that is used":          func() error { _, err := b.Delete(ctx, "", "frame"); return err },
		"another name": func() error {
			_, err := b.Update(ctx, "", "outer", api.TemplatePatch{Name: new("outer2")})
			return err
		},
		"another format": func() error {
			_, err := b.Update(ctx, "", "outer", api.TemplatePatch{Format: new("markdown"),
				Content: &api.TemplateContent{HTML: "x"}})
			return err
		},
		"one that makes a user a circle": func() error {
			_, err := b.Create(ctx, "", api.TemplateRequest{ID: "title", Name: "title", Kind: "partial",
				TemplateDefinition: definition{Content: api.TemplateContent{HTML: strings.Repeat("x", 100)}}})
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
	if _, err = b.Update(ctx, "", "outer", api.TemplatePatch{Name: new("outer2")}); !strings.Contains(
		err.Error(), `user (content.html: line 1, column 1: there is no partial "outer")`) {
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
	if _, err := b.Delete(t.Context(), "", "p"); !strings.Contains(fmt.Sprint(err), "used by all") ||
		strings.Contains(fmt.Sprint(err), "shop") {
		t.Errorf("used by those that mean it only: %v", err)
	}
}

// TestChangesAtTheSameTimeAgree has two processes change templates that need each other, in all ways at once.
// Whatever comes of it, what is stored can be read in the end, and no change is lost.
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
						return // done, or refused permanently
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
				_, err = []bundle{b, other}[i%2].Update(ctx, "", "t", api.TemplatePatch{
					Sample: new(json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))), Version: got.Version})
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

// TestAChangeThatWasCheckedAgainstWhatIsGoneIsNotMade: between the look at the others and the write, somebody
// calls what it uses by another name.
func TestAChangeThatWasCheckedAgainstWhatIsGoneIsNotMade(t *testing.T) {
	b := setup(t)
	other := process(t, b.url)
	b.create(t, partial("p", "x"))
	seen, err := b.fresh(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Update(t.Context(), "", "p", api.TemplatePatch{Name: new("q")}); err != nil {
		t.Fatal(err)
	}
	user := html("user", "{{> p}}")
	change := edited{next: record{Name: "user", Kind: kindTemplate}, content: &user.TemplateDefinition}
	if done, _, err := b.put(t.Context(), seen, "user", change); done || err != nil {
		t.Errorf("%t, %v", done, err)
	}
	_, err = b.Create(t.Context(), "", html("user", "{{> p}}"))
	refused(t, "with another look", err, fault.Unprocessable, "TemplateFault")
}
