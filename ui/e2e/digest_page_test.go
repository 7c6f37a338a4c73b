package e2e_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// shownFields returns the names of the fields of a cadence that a visitor sees.
const shownFields = `[...document.querySelectorAll("fieldset.category .cadence")].slice(0, 1).flatMap((c) =>
	[...c.querySelectorAll("input, select")].filter((f) => f.getClientRects().length).map((f) => f.name.split(".")[2]))
	.filter((name, i, all) => all.indexOf(name) === i).join(" ")`

// TestDigestsInABrowser: an operator adds a kind, changes when a reader is mailed, looks at the mail, sends
// it, and follows its run to the message and back.
func TestDigestsInABrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>", "serviceUrl": "https://mail.example.com"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	for _, actor := range []string{"Ben", "Cleo"} {
		_, err := api.TakeDigestEvents.Do(t.Context(), client, api.DigestEventsRequest{DigestEvent: api.DigestEvent{
			Recipient: "u/1", Email: "ann@example.com", Name: "Ann", TZ: "Europe/Zurich", Category: "comment",
			EntityType: "post", EntityID: "7", Title: "My holidays", Actor: &api.DigestActor{ID: actor, Name: actor}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	v := visit(t, a.URL())
	v.open("/digests/categories/new")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.do(chromedp.SendKeys(chromedp.CSS("input[name=category]"), "comment"),
		chromedp.SendKeys(chromedp.CSS("[name='title.0.text']"), "Comments on posts"))
	v.click("#save")
	v.sees("Category comment added", "Comments on posts")

	v.open("/digests/recipients?q=ann@")
	v.sees("u/1", "ann@example.com")
	v.click("table a")
	v.sees("2 pending events", "My holidays", "Cleo, Ben", "every day at 08:00")
	v.do(chromedp.Click(chromedp.CSS("#change")))
	for mode, want := range map[string]string{"weekly": "mode weekdays at", "custom": "mode times cron",
		"off": "mode", "immediate": "mode gap"} {
		v.do(chromedp.SetValue(chromedp.CSS("select[name='c.0.mode']"), mode))
		if got := run(v, chromedp.Evaluate[string](shownFields)); got != want {
			t.Errorf("a cadence that is %s has the fields %q, want %q", mode, got, want)
		}
	}
	v.do(chromedp.SetValue(chromedp.CSS("select[name='c.0.mode']"), "weekly"),
		chromedp.Click(chromedp.CSS("input[name='c.0.weekdays'][value=fri]")),
		chromedp.SendKeys(chromedp.CSS("input[name='c.0.at']"), "17:30"),
		chromedp.SetValue(chromedp.CSS("input[name=pausedUntil]"), "2090-01-31T09:00"))
	v.click("#save")
	v.sees("Recipient saved.", "every Friday at 17:30", "chosen by the reader")
	one, err := api.GetDigestRecipient.Do(t.Context(), client, api.DigestAccount{}, "u/1")
	if err != nil {
		t.Fatal(err)
	}
	if got := one.PausedUntil.Format("2006-01-02T15:04"); got != "2090-01-31T00:00" {
		t.Errorf("09:00 in Tokyo was stored as %s", got)
	}

	v.click("#live a.button")
	v.sees("The next email is due", "Cleo and Ben")
	if n := run(v, chromedp.Evaluate[int](`document.querySelectorAll("iframe.mail[sandbox='']").length`)); n != 1 {
		t.Errorf("%d frames", n)
	}
	v.click("a.id")
	v.click("#send")
	v.sees("This run contains the pending events")
	v.sees("Content", "My holidays", "Finished") // live: its mail was sent
	here := v.where()
	v.click("dd a[href^='/messages/']")
	v.sees("Timeline")
	v.click("dd a[href^='/digests/runs/']")
	if v.where() != here {
		t.Errorf("the message leads to %s, not to %s", v.where(), here)
	}
	if mails := relay.Messages(); len(mails) != 1 {
		t.Errorf("%d mails", len(mails))
	}
}
