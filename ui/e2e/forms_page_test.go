package e2e_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// fill puts a text into the field of a name, in place of what it had.
func (v *visitor) fill(name, text string) {
	v.t.Helper()
	v.do(chromedp.SetValue(chromedp.CSS(`[name="`+name+`"]`), text))
}

// enter opens the pages, and logs in with the admin token.
func (v *visitor) enter(token string) {
	v.t.Helper()
	v.open("/login")
	v.do(chromedp.Evaluate[chromedp.Void](`for (const d of document.querySelectorAll(".login details")) d.open = true`),
		chromedp.SendKeys(chromedp.CSS("#token"), token))
	v.click("#by-token button")
}

// TestGatewayInTheBrowser adds a gateway whose login fails first, and then is mended.
func TestGatewayInTheBrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t)})
	v := visit(t, a.URL())
	v.refusals.Store(true)
	v.enter(a.Token())
	v.open("/gateways")
	v.click(`a[href="/gateways/new"]`)
	v.fill("gateway", "main")
	v.fill("host", relay.Host())
	v.fill("port", "1")
	v.click("#save")
	v.sees("Nothing was saved", "was tried", "check host and port")
	v.fill("port", strconv.Itoa(relay.Port()))
	v.click("#save")
	v.sees("The gateway main was added")
	v.click("#verify")
	v.sees("Connect: done", "The login works")
	v.fill("name", "The main one")
	v.click("#save")
	v.sees("Changed.")
	client := api.NewClient(a.URL(), a.Token(), nil)
	got, err := api.GetGateway.Do(t.Context(), client, "main")
	if err != nil || got.Name != "The main one" || got.Host != relay.Host() {
		t.Errorf("the gateway is %+v, %v", got, err)
	}
	v.do(chromedp.Click(chromedp.CSS(".ask > summary")))
	v.click("#delete")
	v.sees("The gateway main was deleted")
}

// TestAccountInTheBrowser adds an account, mends its form, tries its relay, and looks at the pages on a
// phone.
func TestAccountInTheBrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	v := visit(t, a.URL())
	v.refusals.Store(true)
	v.enter(a.Token())
	v.open("/accounts")
	v.click(`a[href="/accounts/new"]`)
	v.fill("account", "press")
	v.fill("email", "press")
	v.fill("smtp.host", relay.Host())
	v.fill("smtp.port", strconv.Itoa(relay.Port()))
	v.click("#save")
	v.sees("Nothing was saved: 1 field is wrong.")
	v.fill("email", "press@a-long-name-of-a-domain.of-a-department.example.com")
	v.click("#save")
	v.sees("The account press was added")
	v.click("#verify")
	v.sees("Its own relay", "The login works")
	v.click(`a[href="/accounts/press/edit"]`)
	v.fill("name", "The press office of the whole company")
	v.click("#save")
	v.sees("Changed.", "The press office")
	v.open("/accounts/press/dns")
	v.do(chromedp.Click(chromedp.CSS(`[data-copy="value-0"]`)))
	v.sees("Copied")
	v.open("/accounts/press")
	v.do(chromedp.Click(chromedp.CSS(".ask > summary")))
	v.fill("confirm", "press")
	v.click("#delete")
	v.sees("The account press was deleted")
}

// TestTemplateInTheBrowser writes a template. Its preview follows what is typed, with its styles, in a frame
// that runs nothing.
func TestTemplateInTheBrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	v := visit(t, a.URL())
	v.refusals.Store(true)
	v.enter(a.Token())
	v.open("/templates")
	v.open("/templates/new")
	v.fill("id", "order")
	v.fill("name", "Order")
	v.fill("sample", `{"name": "Ann"}`)
	v.fill("content.subject", "Hello {{params.name}}")
	run(v, chromedp.Evaluate[bool](`(() => {
		const typed = document.getElementById("content.html");
		typed.addEventListener("input", () => { window.typed = performance.now(); });
		document.querySelector("iframe[name=trial]").addEventListener("load", () => {
			if (window.typed) window.shown ??= performance.now() - window.typed;
		});
		return true;
	})()`))
	v.do(chromedp.SendKeys(chromedp.CSS(`[name="content.html"]`), "<p>Dear {{params.name}}</p>"))
	apptest.Eventually(t, "the preview follows what is typed", func() bool {
		return run(v, chromedp.Evaluate[bool](`window.shown > 0`))
	})
	t.Logf("the preview came %v ms after the last key", run(v, chromedp.Evaluate[float64](`window.shown`)))
	v.do(chromedp.Click(chromedp.CSS(".frames .phone")))
	if width := run(v, chromedp.Evaluate[float64](
		`document.querySelector("iframe[name=trial]").getBoundingClientRect().width`)); width > 390 {
		t.Errorf("the frame of a phone is %v pixels wide", width)
	}
	v.click("#save")
	v.sees("Template order saved", "Hello Ann")
	v.open("/templates/order/edit")
	v.fill("content.html", "<p>Dearest {{params.name}}</p>")
	v.click("#save")
	v.sees("Saved as version 2.")
	v.click(`a[href^="/templates/order/compare"]`)
	v.sees("From version 1 to 2", "Dearest")
	v.open("/templates/order")
	v.do(chromedp.Click(chromedp.CSS(".ask > summary")))
	v.fill("to", "ada@example.net")
	v.click("#test")
	v.sees("Test of template order sent")
	if got := relay.Wait(1)[0]; !strings.Contains(string(got.Data), "Dearest Ann") {
		t.Errorf("the relay got %s", got.Data)
	}
}
