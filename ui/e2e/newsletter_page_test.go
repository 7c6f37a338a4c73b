package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// mostClicks bounds the way from an empty Postroom to the numbers of a newsletter.
const mostClicks = 25

// clicking is a visitor whose clicks are counted.
type clicking struct {
	*visitor
	clicks int
}

// leads clicks an element that leads to another page.
func (c *clicking) leads(selector string) {
	c.t.Helper()
	c.clicks++
	c.click(selector)
}

// presses clicks an element that changes the page.
func (c *clicking) presses(selector string) {
	c.t.Helper()
	c.clicks++
	c.do(chromedp.Click(chromedp.CSS(selector)))
}

// goes opens a page by the menu.
func (c *clicking) goes(path string) {
	c.t.Helper()
	c.presses(`#menu details:has(a[href="` + path + `"]) > summary`)
	c.leads(`#menu a[href="` + path + `"]`)
}

// TestANewsletterFromPagesAlone: somebody who knows no ID, no JSON and no command makes a list, imports its
// subscribers, writes a campaign, tests it, sends it, stops it for a moment and reads its numbers.
func TestANewsletterFromPagesAlone(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>", "serviceUrl": "https://mail.example.com"})
	first := visit(t, a.URL())
	first.enter(a.Token())
	c := &clicking{visitor: first.examining(t)}
	c.open("/")

	c.goes("/lists")
	c.presses("main details:has([name=optIn]) > summary")
	c.fill("name", "Weekly news")
	c.leads("#add")
	c.sees("List Weekly news created")

	file := filepath.Join(t.TempDir(), "people.csv")
	if err := os.WriteFile(file, []byte("E-mail,Vorname,Plan size\nann@example.com,Ann,12\n"+
		"ben@example.com,Ben,3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.leads("#import")
	c.fill("consent", "Signed up in the shop")
	c.do(chromedp.SetUploadFiles(chromedp.CSS("[name=file]"), []string{file}))
	c.sees("Plan size", "ben@example.com")
	c.clean("the mapping of columns")
	c.do(chromedp.SetValue(chromedp.CSS("th:nth-child(3) [name=column]"), "attributes.Plan_size:number"))
	c.leads("#import")
	c.sees("2 added", "none rejected")

	c.goes("/lists")
	c.leads("main table a")
	c.leads("#write")
	c.fill("name", "Spring")
	c.fill("subject", "Hello {{subscriber.name}}")
	c.fill("html", "<p>You have {{subscriber.attributes.Plan_size}} seats.</p>")
	c.fill("rate", "0.05") // slow enough to be paused
	c.presses("#insert")
	apptest.Eventually(t, "the link is in the HTML", func() bool {
		return strings.Contains(asked[string](c.visitor, `document.getElementById("html").value`),
			"{{rcpt.unsubscribeUrl}}")
	})
	c.presses(".frames .phone")
	c.presses(".frames .dark")
	c.clean("the editor")
	c.leads("#save")
	c.sees("Campaign Spring saved as a draft", "Ready to send to about 2 people")
	c.clean("a draft")

	c.fill("to", "me@example.com")
	c.leads("#test")
	c.sees("1 test email sent")
	if got := string(relay.Wait(1)[0].Data); !strings.Contains(got, "[Test] Hello Ann") ||
		!strings.Contains(got, "You have 12 seats") {
		t.Errorf("the test is %s", got)
	}
	c.presses("#live .ask > summary.primary")
	c.sees("Send Spring to about 2 people", "at most 0.05 emails per second", "You can pause it")
	c.leads("#send")
	c.sees("The campaign is now sending")
	relay.Wait(2)
	c.leads("#pause")
	c.sees("The campaign is now paused")
	c.leads("#resume")
	relay.Wait(3)
	c.sees("100.0 %", "2 recipients")
	c.clean("the numbers")
	if c.clicks > mostClicks {
		t.Errorf("%d clicks; at most %d are allowed", c.clicks, mostClicks)
	}
	t.Logf("%d clicks", c.clicks)
}

// clean complains of what axe-core finds wrong with the page as it is.
func (v *visitor) clean(what string) {
	v.t.Helper()
	if found := run(v, chromedp.Evaluate[string](violations, chromedp.EvalAwaitPromise)); found != "" {
		v.t.Errorf("%s:\n%s", what, found)
	}
}
