package e2e_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// chartFaults returns what is wrong with the charts of a page as a browser shows them: drawings without a
// name, text that leaves them, bars that can't be told from the card, patterns that do not exist.
const chartFaults = `(() => {
	const faults = [], lum = (c) => {
		const [r, g, b] = c.match(/[\d.]+/g).map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const card = lum(getComputedStyle(document.querySelector(".card")).backgroundColor);
	const tell = (c, least, what) => {
		const other = lum(c), ratio = (Math.max(card, other) + .05) / (Math.min(card, other) + .05);
		if (ratio < least) faults.push(what + " has the contrast " + ratio.toFixed(2));
	};
	const charts = document.querySelectorAll(".chart .plot");
	if (charts.length !== WANTED) faults.push(charts.length + " charts");
	for (const chart of charts) {
		const title = chart.querySelector("title").textContent, box = chart.getBoundingClientRect();
		for (const id of chart.getAttribute("aria-labelledby").split(" "))
			if (!document.getElementById(id)?.textContent) faults.push(title + " has no " + id);
		for (const text of chart.querySelectorAll("text")) {
			const b = text.getBoundingClientRect();
			if (b.right > box.right + 1 || b.left < box.left - 1 || b.height < 10) faults.push(text.textContent + " leaves " + title);
			tell(getComputedStyle(text).fill, 4.5, text.textContent);
		}
		for (const bar of chart.querySelectorAll("g rect")) {
			const fill = bar.getAttribute("fill")?.slice(5, -1);
			if (fill && !document.getElementById(fill)) faults.push(title + " has no pattern " + fill);
			tell(getComputedStyle(bar)[fill ? "stroke" : "fill"], 3, "a bar of " + title);
			if (bar.getBoundingClientRect().width === 0 && bar.getAttribute("width") !== "0%") faults.push("a bar of " + title + " has no width");
		}
	}
	if (document.documentElement.scrollWidth > innerWidth) faults.push("the page is wider than the window");
	return faults.join("\n");
})()`

// faultsOfCharts returns the script for a page with a number of charts.
func faultsOfCharts(wanted int) string {
	return strings.Replace(chartFaults, "WANTED", strconv.Itoa(wanted), 1)
}

// TestResultsOfACampaignInABrowser: the charts are drawn in both themes and on a phone, and go on changing
// while somebody reads their figures.
func TestResultsOfACampaignInABrowser(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": testredis.URL(t), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>", "serviceUrl": "https://mail.example.com", "tracking.opens": "true",
		"tracking.clicks": "true"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	apptest.People(t, client, "weekly", append(apptest.Many(60),
		"rcpt-550@some-quite-long-domain-name.example.org")...)
	apptest.WithVariants(t, client, "c1", "weekly", api.CampaignTrial{Share: 1, Metric: "manual"})
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	mails := relay.Messages()
	apptest.Eventually(t, "a click is not that of a scanner", func() bool {
		return time.Since(*apptest.Stats(t, client, "c1").Started) > 2*time.Second
	})
	apptest.Follow(t, a.URL(), "GET", apptest.Clicked, mails[0], "")
	apptest.Eventually(t, "a click is known", func() bool {
		return apptest.Stats(t, client,
			"c1").ClickedTotal == 1
	})

	v := visit(t, a.URL())
	v.open("/campaigns/c1")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("By hour", "shop.test/sale", "some-quite-long-domain-name.example.org", "Times are in Asia/Tokyo")
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int64{1300, 360} {
			if _, err := chromedp.Call(v.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}); err != nil {
				t.Fatal(err)
			}
			v.do(chromedp.EmulateViewport(width, 900))
			if faults := run(v, chromedp.Evaluate[string](faultsOfCharts(4))); faults != "" {
				t.Errorf("%s, %d pixels:\n%s", theme, width, faults)
			}
		}
	}
	v.do(chromedp.Click(chromedp.CSS("#links-figures summary")))
	apptest.Follow(t, a.URL(), "GET", apptest.Clicked, mails[1], "")
	v.sees("2 · 100.0\u00a0%")
	if open := run(v, chromedp.Evaluate[bool](`document.getElementById("links-figures").open`)); !open {
		t.Error("the figures are shut again")
	}
}
