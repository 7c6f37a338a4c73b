package templates

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/outbox/templates/render"
)

func TestPartialsAndLayouts(t *testing.T) {
	b := setup(t)
	b.create(t,
		partial("brand/name", "ACME"), partial("footer", "[{{> brand/name}} {{x}}]"),
		of("layout", "frame", "<body>{{> @partial-block}}{{> footer}}</body>"),
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
		// an account changes nothing about what is everybody's
		{"shop", "everybody", "<body><p>&lt;x&gt;</p>[ACME &lt;x&gt;]</body>"},
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
	if diff := cmp.Diff(map[string]string{"footer": "[{{> brand/name}} {{x}}]", "brand/name": "ACME"},
		found.Options.Partials); diff != "" || err != nil {
		t.Errorf("just what it can reach: %s%v", diff, err)
	}
	if found, err = b.Template(t.Context(), "", "computed", ""); len(found.Options.Partials) != 2 || err != nil {
		t.Errorf("all that it may reach: %v, %v", found.Options.Partials, err)
	}
}

func TestLocales(t *testing.T) {
	b := setup(t)
	variants := func(req api.TemplateRequest, v map[string]api.TemplateContent) api.TemplateRequest {
		req.Locales = v
		return req
	}
	b.create(t,
		variants(partial("bye", "Bye"), map[string]api.TemplateContent{"de": {HTML: "Tschüss"},
			"de-CH": {HTML: "Adieu"}, "it": {HTML: "Ciao"}}),
		variants(html("t", "Hello {{> bye}}"), map[string]api.TemplateContent{"de": {HTML: "Hallo {{> bye}}"},
			"pt-BR": {HTML: "Olá {{> bye}}"}}),
	)
	for locale, want := range map[string]string{
		"": "Hello Bye", "en": "Hello Bye", "de": "Hallo Tschüss", "de-CH": "Hallo Adieu", "de_ch": "Hallo Adieu",
		"de-AT": "Hallo Tschüss", "it": "Hello Ciao", "pt": "Olá Bye",
		"xx-" + strings.Repeat("y", 100): "Hello Bye",
	} {
		for range 2 { // read, and remembered
			if got := b.says(t, "", "t", locale); got != want {
				t.Errorf("%q: %q, want %q", locale, got, want)
			}
		}
	}
	d := definition{Content: api.TemplateContent{Subject: "s", PreviewText: "p", HTML: "h", Text: "t"},
		Locales: map[string]api.TemplateContent{
			"de": {Subject: "S"}, "fr": {HTML: "H"}, "it": {Text: "T"},
		}}
	for locale, want := range map[string]api.TemplateContent{
		"en": d.Content, "de": {Subject: "S", PreviewText: "p", HTML: "h", Text: "t"},
		"fr": {Subject: "s", PreviewText: "p", HTML: "H"}, "it": {Subject: "s", PreviewText: "p", HTML: "h",
			Text: "T"},
	} {
		if got, _ := variantOf(&d, locale); got != want {
			t.Errorf("%s: %+v, want %+v", locale, got, want)
		}
	}
}

func TestEveryProcessSeesAChangeWithinASecond(t *testing.T) {
	b := setup(t)
	other := process(t, b.url)
	b.create(t, partial("p", "1"), html("t", "{{> p}}"))
	if got := other.says(t, "", "t", ""); got != "1" {
		t.Errorf("a new one: %s", got)
	}
	b.create(t, html("t2", "{{> p}}"))
	if got := other.says(t, "", "t2", ""); got != "1" {
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
		c.remember(e, "", Template{Source: render.Source{HTML: strings.Repeat("x", 1<<20)}})
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
