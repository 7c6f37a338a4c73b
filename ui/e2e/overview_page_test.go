package e2e_test

import (
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestOverviewInABrowser: the first page follows the mail while somebody looks at it, and what is on it leads
// to where it is mended. It fits a phone, light and dark.
func TestOverviewInABrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>", "alerts.every": "1s", "alerts.deadLetters": "1"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	send := func(to string) {
		t.Helper()
		_, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{To: api.Addresses{{Address: to}},
			Subject: "Hello", Text: "Hi"})
		if err != nil {
			t.Fatal(err)
		}
	}
	v := visit(t, a.URL())
	v.open("/")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("No message was sent in the last 10 minutes, and none is due.")

	send("ada@example.net")
	send("rcpt-550@example.net")
	v.sees("Messages were sent in the last 10 minutes", "Why mail failed", "Counted over the newest 1 message") // without a reload
	apptest.Eventually(t, "the alert is on, and everything is counted", func() bool {
		got, err := api.GetOverview.Do(t.Context(), client, api.OverviewQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return got.Total == api.Rate{Accepted: 2, Sent: 1, Failed: 1} &&
			slices.ContainsFunc(got.Alerts, func(a api.OverviewAlert) bool { return a.Alert.Alert == "mailFails" })
	})
	v.open("/log")
	v.sees(" alerts") // the Redis of tests keeps nothing, which is an alert too
	v.click("#alerts")
	v.sees("1 messages failed permanently in the last hour", "Show failed messages")
	for _, theme := range []string{"light", "dark"} {
		if _, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int64{1300, 390} {
			v.do(chromedp.EmulateViewport(width, 844))
			for _, path := range []string{"/?days=7", "/?days=30", "/"} {
				v.open(path)
				if faults := run(v, chromedp.Evaluate[string](faultsOfCharts(2))); faults != "" {
					t.Errorf("%s, %s, %d pixels:\n%s", path, theme, width, faults)
				}
			}
		}
	}
	v.click(`.alert a[href="/playbooks#mail-fails"]`)
	v.sees("Mail fails")
	v.open("/")
	v.click(`.alert a[href="/outbox?state=failed"]`)
	v.sees("rcpt-550@example.net")
}
