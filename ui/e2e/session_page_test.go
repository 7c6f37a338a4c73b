package e2e_test

import (
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// settles types, and waits until the preview next to the form has followed.
func (v *visitor) settles(typing func()) {
	v.t.Helper()
	v.do(chromedp.Evaluate[chromedp.Void](`document.querySelector("iframe[name=trial]").addEventListener("load", () => {
		window.settled = sessionStorage.getItem("draft") !== null;
	})`))
	typing()
	apptest.Eventually(v.t, "the preview follows what is typed", func() bool {
		return asked[bool](v, `window.settled === true`)
	})
}

// TestAFormSurvivesTheEndOfTheSession: after the login it has what was filled in, until it is saved. A form
// that was refused has it, too.
func TestAFormSurvivesTheEndOfTheSession(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	v := visit(t, a.URL())
	login := func() {
		v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
		v.click(".login button")
	}
	value := func(selector string) string {
		return run(v, chromedp.Evaluate[string](`document.querySelector("main `+selector+`").value`))
	}
	v.open("/campaigns/new")
	login()
	v.sees("New campaign")
	v.do(chromedp.SendKeys(chromedp.CSS("main [name=name]"), "Spring sale"))
	v.settles(func() { v.do(chromedp.SendKeys(chromedp.CSS("main [name=text]"), "Everything must go")) })
	if _, err := chromedp.Call(v.ctx, network.ClearBrowserCookies, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	v.click("#save")
	v.sees("Your session ended")
	login()
	v.sees("It is not saved yet")
	if name, text := value("[name=name]"), value("[name=text]"); name != "Spring sale" ||
		text != "Everything must go" {
		t.Errorf("after the login the form has %q and %q", name, text)
	}

	v.open("/lists")
	v.do(chromedp.Click(chromedp.CSS("main details:has([name=optIn]) > summary")))
	v.do(chromedp.SendKeys(chromedp.CSS("main form[method=post] [name=name]"), "News"))
	v.do(chromedp.SendKeys(chromedp.CSS("main form[method=post] [name=account]"), "nobody"))
	v.click("#add")
	v.sees("was not found")
	if name := value("form[method=post] [name=name]"); name != "News" {
		t.Errorf("a refused form has the name %q", name)
	}
	v.do(chromedp.SendKeys(chromedp.CSS("main form[method=post] [name=account]"), "\b\b\b\b\b\b"))
	v.click("#add")
	v.sees("created")
	v.open("/lists")
	if name := value("form[method=post] [name=name]"); name != "" {
		t.Errorf("the form of a new list has the saved name %q", name)
	}
}
