package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestALivePageShowsThatRedisIsAway: it has its banner after the second failed request, and loses it when
// Redis is back. Reads of the API fail as fast.
func TestALivePageShowsThatRedisIsAway(t *testing.T) {
	t.Parallel()
	redis, relay := testredis.Server(t), testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": redis.URL(), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	v := visit(t, a.URL())
	v.open("/login?next=/status")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("Ready.")
	asked[bool](v, `{
		const ask = window.fetch, banner = document.querySelector("#offline");
		let failed = 0;
		window.shown = 0;
		window.fetch = async (...args) => {
			const answer = await ask(...args);
			failed = answer.ok ? 0 : failed + 1;
			return answer;
		};
		const note = () => { if (!banner.hidden) window.shown ||= failed; };
		new MutationObserver(note).observe(banner, { attributes: true });
		true;
	}`)
	v.refusals.Store(true)
	redis.Stop()
	begin := time.Now()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"/v1/outbox", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if took := time.Since(begin); res.StatusCode != http.StatusServiceUnavailable || took > 8*time.Second {
		t.Errorf("the API answers %d after %v", res.StatusCode, took)
	}
	v.sees("Postroom doesn’t answer")
	if after := asked[int](v, `window.shown`); after != 2 {
		t.Errorf("the banner came after %d failed requests", after)
	}
	redis.Cont()
	v.comes(`document.querySelector("#offline").hidden`)
}

// TestAFormSurvivesThatRedisIsAway: the page of the error leads back to it, and it has what was filled in.
func TestAFormSurvivesThatRedisIsAway(t *testing.T) {
	t.Parallel()
	redis, relay := testredis.Server(t), testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"redis.url": redis.URL(), "smtp": relay.URL(),
		"from": "Shop <shop@example.com>"})
	v := visit(t, a.URL())
	v.open("/login?next=/campaigns/new")
	v.do(chromedp.SendKeys(chromedp.CSS("#token"), a.Token()))
	v.click(".login button")
	v.sees("New campaign")
	v.settles(func() { v.do(chromedp.SendKeys(chromedp.CSS("main [name=name]"), "Spring sale")) })
	v.refusals.Store(true)
	redis.Stop()
	v.click("#save")
	v.sees("Redis doesn’t answer")
	redis.Cont()
	v.click(`.failure a[href="/campaigns/new"]`)
	v.sees("It is not saved yet")
	if name := asked[string](v, `document.querySelector("main [name=name]").value`); name != "Spring sale" {
		t.Errorf("the form has the name %q", name)
	}
}
