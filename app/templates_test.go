package app_test

import (
	"encoding/json"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestTemplatesInTheBrowser looks at a template, its preview in another locale, and goes back to an earlier version.
func TestTemplatesInTheBrowser(t *testing.T) {
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := start(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(), "from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	definition := api.TemplateDefinition{
		Content: api.TemplateContent{
			Subject: "News of {{date params.at \"MMMM\"}}",
			HTML:    `<style>h1 { color: #b00; font-family: Georgia }</style><h1>Hello {{params.name}}</h1><p style="padding: 8px; border: 1px solid #ccc">From {{account.name}} {{params.oops}}</p>`,
		},
		Locales: map[string]api.TemplateContent{"de": {Subject: "Neues vom {{date params.at \"MMMM\"}}"}},
		Sample:  json.RawMessage(`{"name":"<Ann>","at":"2026-03-21"}`),
	}
	if _, err := client.CreateTemplate(t.Context(), api.TemplateRequest{ID: "news", Name: "Newsletter", Description: "Every month", TemplateDefinition: definition}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.UpdateTemplate(t.Context(), "news", api.TemplatePatch{Content: &api.TemplateContent{Text: "Only text"}}); err != nil {
		t.Fatal(err)
	}
	v := visit(t, a.URL())
	v.open("/templates")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("1 template", "Every month")
	v.click(`a[href="/templates/news"]`)
	v.sees("Only text", "2 versions")
	v.click(`a[href="/templates/news?version=1"]`)
	v.sees("This is version 1", "News of March", "params.oops", "Hello <Ann>", "From Shop")
	v.do(chromedp.SetValue(chromedp.CSS("input[name=locale]"), "de-AT"))
	v.click("section form.inline button")
	v.sees("in the variant de", "Neues vom März", "This is version 1")
	v.click(".listhead form button")
	v.sees("Version 3 is in force, which says what version 1 said.", "3 versions", "News of March")
	if got := v.where(); got != "/templates/news" {
		t.Errorf("it leads to %s", got)
	}
}
