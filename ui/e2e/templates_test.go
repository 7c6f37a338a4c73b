package e2e_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestTemplatesInTheBrowser views a template and its preview in another locale, and restores an earlier
// version.
func TestTemplatesInTheBrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	definition := api.TemplateDefinition{
		Content: api.TemplateContent{
			Subject: "News of {{date params.at \"MMMM\"}}",
			HTML:    `<style>h1 { color: #b00; font-family: Georgia }</style><h1>Hello {{params.name}}</h1><p style="padding: 8px; border: 1px solid #ccc">From {{account.name}} {{params.oops}}</p>`,
		},
		Locales: map[string]api.TemplateContent{"de": {Subject: "Neues vom {{date params.at \"MMMM\"}}"}},
		Sample:  json.RawMessage(`{"name":"<Ann>","at":"2026-03-21"}`),
	}
	if _, err := api.CreateTemplate.Do(t.Context(), client, api.TemplateRequest{ID: "news", Name: "Newsletter",
		Description: "Every month", TemplateDefinition: definition}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.UpdateTemplate.Do(t.Context(), client, api.TemplatePatch{
		Content: &api.TemplateContent{Text: "Only text"}}, "news"); err != nil {
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
	v.sees("variant de", "Neues vom März", "This is version 1")
	v.click(".listhead form button")
	v.sees("The current version is 3, with the content of version 1.", "3 versions", "News of March")
	if got := v.where(); got != "/templates/news" {
		t.Errorf("it leads to %s", got)
	}
}

// TestAMailOfATemplate sends a mail of a template as it is when the mail is accepted. Nothing from templates
// and their data is in the log.
func TestAMailOfATemplate(t *testing.T) {
	t.Parallel()
	var log apptest.Log
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.RunLogging(t, map[string]string{
		"redis.url": testredis.URL(t), "smtp": relay.URL(), "from": "Shop <shop@example.com>",
		"serviceUrl": "https://mail.example.com", "templates.missing": "error",
	}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ctx, client := t.Context(), api.NewClient(a.URL(), a.Token(), nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	content := func(c api.TemplateContent) api.TemplateDefinition { return api.TemplateDefinition{Content: c} }
	_, err := api.CreateTemplate.Do(ctx, client, api.TemplateRequest{ID: "foot", Name: "foot", Kind: "partial",
		TemplateDefinition: content(api.TemplateContent{Text: "-- {{account.name}} {{service.url}}"})})
	must(err)
	order := content(api.TemplateContent{Subject: "Order {{params.no}}",
		Text: "Dear {{rcpt.name}}, templatesecret {{params.secret}}\n{{> foot}}"})
	order.Locales = map[string]api.TemplateContent{"de": {Subject: "Bestellung {{params.no}}"}}
	_, err = api.CreateTemplate.Do(ctx, client, api.TemplateRequest{ID: "order", Name: "Order",
		TemplateDefinition: order})
	must(err)
	submit := func(params string) error {
		at := time.Now().Add(2 * time.Second)
		_, err := api.Submit.Do(ctx, client, api.SubmitRequest{
			To: api.Addresses{{Name: "Ann", Address: "ann@example.net"}}, Template: "order", Locale: "de-CH",
			Render: &api.Render{Params: json.RawMessage(params)}, SendAt: &at,
		})
		return err
	}
	must(submit(`{"no":7,"secret":"paramsecret"}`))
	_, err = api.UpdateTemplate.Do(ctx, client, api.TemplatePatch{
		Content: &api.TemplateContent{Text: "changed"}}, "foot")
	must(err)
	mail := string(relay.Wait(1)[0].Data)
	for _, want := range []string{"Subject: Bestellung 7", "Dear Ann, templatesecret paramsecret",
		"-- Shop https://mail.example.com"} {
		if !strings.Contains(mail, want) {
			t.Errorf("the mail lacks %q:\n%s", want, mail)
		}
	}
	failure := func(err error) string {
		t.Helper()
		f, ok := errors.AsType[*api.Failure](err)
		if !ok {
			t.Fatalf("%v", err)
		}
		return f.Problem.Code
	}
	if code := failure(submit(`{"no":"paramsecret"}`)); code != "TemplateVariablesMissing" {
		t.Errorf("a variable is missing: %s", code)
	}
	_, err = api.UpdateTemplate.Do(ctx, client, api.TemplatePatch{
		Content: &api.TemplateContent{Text: "templatesecret {{#if"}}, "order")
	if code := failure(err); code != "TemplateFault" {
		t.Errorf("a fault: %s", code)
	}
	_, err = api.PreviewTemplate.Do(ctx, client, api.TemplatePreviewRequest{
		Params: json.RawMessage(`{"secret":"paramsecret"}`)}, "order")
	must(err)
	for _, secret := range []string{"templatesecret", "paramsecret"} {
		if log.Has(secret) {
			t.Errorf("%s is in the log", secret)
		}
	}
}
