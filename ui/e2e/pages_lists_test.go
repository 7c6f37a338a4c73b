package e2e_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// asked evaluates an expression of the page.
func asked[T any](v *visitor, expression string) T {
	v.t.Helper()
	return run(v, chromedp.Evaluate[T](expression))
}

// comes waits until an expression of the page is true, or of the page that replaces it.
func (v *visitor) comes(expression string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.ctx, apptest.Patience)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx, chromedp.PollFunction[bool](`() => `+expression,
			chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(apptest.Patience)))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "context with specified id") {
			v.t.Fatalf("%s does not come true: %v\n%s", expression, err, v.text())
		}
	}
}

// desk is a Postroom with two waiting messages and more, and an operator who is logged in.
func desk(t *testing.T, more ...api.SubmitRequest) *visitor {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	at := time.Now().Add(24 * time.Hour)
	all := []api.SubmitRequest{{Subject: "the first one"}, {Subject: "the second one"}}
	for i := range all {
		all[i].SendAt, all[i].To = &at, api.Addresses{{Address: "ada@example.net"}}
	}
	for _, req := range append(all, more...) {
		apptest.HandIn(t, client, req)
	}
	v := visit(t, a.URL())
	v.open("/outbox")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("the second one")
	return v
}

// TestListsByKeyboard: a list is searched, walked and opened without a mouse.
func TestListsByKeyboard(t *testing.T) {
	t.Parallel()
	v := desk(t)
	const subject = `document.activeElement.textContent`
	v.do(chromedp.KeyEvent("j"))
	v.comes(subject + ` === "the first one"`)
	v.do(chromedp.KeyEvent("j"), chromedp.KeyEvent("j"))
	v.comes(subject + ` === "the second one"`)
	v.do(chromedp.KeyEvent("k"))
	v.comes(subject + ` === "the first one"`)

	v.do(chromedp.KeyEvent("/"))
	v.comes(`document.activeElement.name === "search"`)
	v.do(chromedp.SendKeys(chromedp.CSS("main input[name=search]"), "j?/k"))
	v.comes(`document.activeElement.value.endsWith("j?/k") && !document.getElementById("keys").open`)

	v.do(chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent("?"))
	v.comes(`document.getElementById("keys").open`)
	v.sees("next row, previous row")
	v.do(chromedp.KeyEvent("?"), chromedp.KeyEvent("j"))
	v.comes(subject + ` === "the first one"`)
	v.do(chromedp.KeyEvent("\r"))
	v.comes(`location.pathname.startsWith("/messages/")`)
	v.sees("the first one")
}

// TestASearchLooksOn: a page of a search ends in time, and the script looks on: in the log until the oldest
// mail, in the outbox until the newest.
func TestASearchLooksOn(t *testing.T) {
	t.Parallel()
	at, many := time.Now().Add(24*time.Hour), make([]api.MailMergeEntry, 200)
	for i := range many {
		many[i].To = api.Address{Address: "bob@example.net"}
	}
	newsletter := api.SubmitRequest{SendAt: &at, Subject: "newsletter", Text: "x", MailMerge: many}
	last := api.SubmitRequest{SendAt: &at, Subject: "the last one", Text: "x", To: apptest.To("ann")}
	v := desk(t, append(slices.Repeat([]api.SubmitRequest{newsletter}, 8), last)...)
	for path, subject := range map[string]string{"/log": "the first one", "/outbox": "the last one"} {
		v.open(path + "?search=" + url.QueryEscape(subject))
		v.comes(`document.querySelector("main tbody a")?.textContent === "` + subject + `" &&
			!document.querySelector("[data-further]")`)
		v.seesNot("newsletter", "the second one")
	}
}

// firstRow is the distance of a list's first row from the top of the screen.
const firstRow = `Math.round(document.querySelector("main tbody tr")?.getBoundingClientRect().top ?? 0)`

// TestListsOnAPhone: the fields of a list are folded, and its first row is seen at once.
func TestListsOnAPhone(t *testing.T) {
	t.Parallel()
	v := desk(t)
	v.do(chromedp.EmulateViewport(390, 844))
	for _, path := range strings.Fields("/outbox /log /templates /audit /accounts") {
		v.open(path)
		if top := asked[int](v, firstRow); top > 500 {
			t.Errorf("%s: its first row begins at %d of 844 pixels", path, top)
		}
	}
	v.open("/outbox")
	const field = `document.querySelector("[name=tag]").checkVisibility()`
	if asked[bool](v, field) {
		t.Error("the fields of the filter are not folded")
	}
	v.do(chromedp.Click(chromedp.CSS(".fold > summary")))
	v.comes(field)
	v.do(chromedp.EmulateViewport(1300, 900))
	v.open("/outbox")
	v.comes(field)
}

// TestColoursAndTimesOfTheReader: a theme that was chosen is there with the first bytes of each page, and
// times are those of the reader's zone.
func TestColoursAndTimesOfTheReader(t *testing.T) {
	t.Parallel()
	v := desk(t)
	const scheme = `getComputedStyle(document.documentElement).colorScheme`
	for _, theme := range []string{"dark", "light"} {
		v.click(`.theme button[value=` + theme + `]`)
		v.comes(scheme + ` === "` + theme + `" && location.pathname === "/outbox"`)
		if got := asked[string](v, `getComputedStyle(document.body).backgroundColor`); got !=
			map[string]string{"dark": "rgb(20, 24, 22)", "light": "rgb(246, 247, 245)"}[theme] {
			t.Errorf("%s: the page is %s", theme, got)
		}
	}
	v.click(`.theme button[value=system]`)
	v.comes(scheme + ` === "light dark"`)

	v.sees("in 23 h", "times in Asia/Tokyo")
	v.comes(`(() => { const t = document.querySelector("td time"), at = new Date(t.dateTime);
		return t.lastElementChild.textContent === at.toLocaleTimeString(undefined, { hour: "2-digit",
			minute: "2-digit", second: "2-digit", hourCycle: "h23" }) && t.title.endsWith(" Asia/Tokyo") })()`)
}
