package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestTheMenuFitsOneRow of a desktop, and is a drawer on a phone. Each entry is reached from both.
func TestTheMenuFitsOneRow(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	v := visit(t, a.URL())
	v.open("/")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("No message was sent in the last 10 minutes")
	for _, width := range []int64{1280, 390} {
		v.do(chromedp.EmulateViewport(width, 844))
		v.open("/outbox")
		if height := run(v, chromedp.Evaluate[float64](`document.querySelector("header.top").offsetHeight`)); height > 60 {
			t.Errorf("%d pixels wide, the head is %v pixels high", width, height)
		}
		if width == 390 {
			v.do(chromedp.Click(chromedp.CSS("#menu > summary")))
		} else {
			v.do(chromedp.Click(chromedp.CSS("#menu details:has([href='/audit']) > summary")))
		}
		if seen := run(v, chromedp.Evaluate[bool](`document.querySelector("#menu [href='/audit']").checkVisibility()`)); !seen {
			t.Errorf("%d pixels wide, the entry Audit is not seen", width)
		}
		v.do(chromedp.KeyEvent("\x1b"))
		if open := run(v, chromedp.Evaluate[bool](`!!document.querySelector("#menu[open], #menu details[open]")`)); open {
			t.Errorf("%d pixels wide, Escape does not close the menu", width)
		}
	}
	v.do(chromedp.Click(chromedp.CSS("#menu > summary")))
	v.click("#menu [href='/audit']")
	v.sees("Audit log")
}
