package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// codeOf returns the code of a refusal; empty if there is none.
func codeOf(err error) string {
	f, _ := errors.AsType[*api.Failure](err)
	if f == nil {
		return ""
	}
	return f.Problem.Code
}

// bySubject counts a relay's messages by subject.
func bySubject(t *testing.T, relay *testsmtp.Server) map[string]int {
	t.Helper()
	got := map[string]int{}
	for _, m := range relay.Messages() {
		got[apptest.Header(t, m, "Subject")]++
	}
	return got
}

// TestCampaignFindsItsWinner: a part of the people gets the variants, the others wait, and get the one that
// more people opened. Two processes decide it once.
func TestCampaignFindsItsWinner(t *testing.T) {
	t.Parallel()
	const all = 600
	redis, relay := testredis.Server(t), testsmtp.Start(t, testsmtp.Options{})
	set := apptest.SettingsFor(t, redis.URL(), relay)
	set["serviceUrl"], set["tracking.opens"] = "https://mail.example.com", "true"
	one, two := apptest.Spawn(t, set), apptest.Spawn(t, set)
	apptest.People(t, one.Client, "weekly", apptest.Many(all)...)
	apptest.WithVariants(t, one.Client, "c1", "weekly", api.CampaignTrial{Share: .3, Metric: "opens", Wait: "3s",
		Minimum: 20})
	apptest.SendNow(t, two.Client, "c1")
	apptest.Eventually(t, "the test is over", func() bool {
		return apptest.Stats(t, one.Client,
			"c1").Decides != nil
	})
	first := relay.Messages()
	if n := len(first); n < all/5 || n > all*2/5 {
		t.Fatalf("%d of %d people are in the test, want 30 %%", n, all)
	}
	opened := map[string]int{"Subject A": 3, "Subject B": 12}
	for _, m := range first {
		if s := apptest.Header(t, m, "Subject"); opened[s] > 0 {
			opened[s]--
			apptest.Follow(t, one.URL, "GET", apptest.Pixel, m, "")
		}
	}
	st := apptest.Reaches(t, two.Client, "c1", api.CampaignSent)
	if st.Winner != "b" || st.Decided == nil || len(st.Variants) != 2 {
		t.Fatalf("%+v", st)
	}
	a, b := st.Variants[0], st.Variants[1]
	if a.Test != a.States.Sent || a.Opened != 3 || b.Opened != 12 || a.Test+b.Test != len(first) ||
		b.States.Sent != all-a.Test {
		t.Errorf("%+v", st.Variants)
	}
	if got := bySubject(t, relay); got["Subject A"] != a.Test || got["Subject B"] != all-a.Test {
		t.Errorf("%v, %+v", got, st.Variants)
	}
	for to, n := range apptest.Copies(relay) {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
	for _, o := range st.Variants {
		page, err := api.ListCampaignRecipients.Do(t.Context(), one.Client, api.CampaignRecipientQuery{
			Variant: o.Variant, State: "sent", CursorQuery: api.CursorQuery{PageSize: 1000}}, "c1")
		opened := 0
		for _, r := range page.Recipients {
			if r.Opened {
				opened++
			}
		}
		if err != nil || len(page.Recipients) != o.States.Sent || opened != o.Opened {
			t.Errorf("variant %s: %d recipients opened it of %d, %v; counted %+v", o.Variant, opened,
				len(page.Recipients), err, o)
		}
	}
	again, err := api.RecountCampaign.Do(t.Context(), one.Client, "c1")
	if err != nil || again.Changed {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := api.DecideCampaign.Do(t.Context(), one.Client, api.CampaignWinner{Variant: "a"},
		"c1"); codeOf(err) != "WinnerDecided" {
		t.Errorf("it is decided: %v", err)
	}
}

// TestCampaignWinnerByHand: no one else gets it before somebody decides. The second decision is refused.
func TestCampaignWinnerByHand(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(200)...)
	apptest.WithVariants(t, client, "c1", "weekly", api.CampaignTrial{Share: .2, Metric: "manual"})
	ctx := t.Context()
	if _, err := api.DecideCampaign.Do(ctx, client, api.CampaignWinner{Variant: "a"},
		"c1"); codeOf(err) != "CampaignState" {
		t.Errorf("it was not begun: %v", err)
	}
	apptest.SendNow(t, client, "c1")
	var sent int
	apptest.Eventually(t, "the test is over", func() bool {
		st := apptest.Stats(t, client, "c1")
		sent = st.States.Sent
		return !st.Counting && sent > 20 && st.States.Open() == 200-sent && st.States.Sending == 0 &&
			sent == relay.Count() && st.Variants[0].Test+st.Variants[1].Test == sent
	})
	if _, err := api.DecideCampaign.Do(ctx, client, api.CampaignWinner{Variant: "c"}, "c1"); err == nil {
		t.Error("there is no variant c")
	}
	for _, p := range []api.CampaignPatch{{Variants: &[]api.CampaignVariant{{Variant: "x"}, {Variant: "y"}}},
		{Test: &api.CampaignTrial{Share: .5}}} {
		_, err := api.PauseCampaign.Do(ctx, client, "c1")
		if err == nil {
			_, err = api.UpdateCampaign.Do(ctx, client, p, "c1")
		}
		if codeOf(err) != "CampaignState" {
			t.Errorf("another test while one is under way: %v", err)
		}
	}
	if _, err := api.DecideCampaign.Do(ctx, client, api.CampaignWinner{Variant: "a"}, "c1"); err != nil {
		t.Fatal(err)
	}
	if n := relay.Count(); n != sent {
		t.Errorf("%d mails were sent while it was paused", n-sent)
	}
	if _, err := api.ResumeCampaign.Do(ctx, client, "c1"); err != nil {
		t.Fatal(err)
	}
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if st.Winner != "a" || st.States.Sent != 200 || st.Variants[1].States.Sent != st.Variants[1].Test {
		t.Errorf("%+v", st)
	}
}

// TestCampaignWithTooSmallATest: a test that can't have a result is not begun. A test without one is held,
// and continues when somebody decides.
func TestCampaignWithTooSmallATest(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, map[string]string{"newsletter.holdAfter": "1000"})
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf("rcpt-550+%d@example.net", i))
	}
	apptest.People(t, client, "dead", append(list, apptest.Many(40)...)...)
	ctx := t.Context()
	apptest.WithVariants(t, client, "c0", "dead", api.CampaignTrial{Share: .1})
	_, err := api.SendCampaign.Do(ctx, client, api.CampaignStart{}, "c0")
	if codeOf(err) != "CampaignRefused" || !strings.Contains(err.Error(), "test.minimum") {
		t.Errorf("%v", err)
	}
	apptest.WithVariants(t, client, "c1", "dead", api.CampaignTrial{Share: .9, Wait: "1s", Minimum: 45})
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignHeld)
	info, err := api.GetCampaign.Do(ctx, client, "c1")
	if err != nil || info.Reason != "winner" || !strings.Contains(info.Detail, "fewer than 45") {
		t.Errorf("%+v, %v", info, err)
	}
	run, err := api.DecideCampaign.Do(ctx, client, api.CampaignWinner{Variant: "b"}, "c1")
	if err != nil || run.State != api.CampaignSending {
		t.Fatalf("%+v, %v", run, err)
	}
	if st := apptest.Reaches(t, client, "c1", api.CampaignSent); st.States.Sent != 40 ||
		st.States.Bounced != 100 {
		t.Errorf("%+v", st.States)
	}
}

// TestCheckAsksLinks: the check warns about a link that does not work. Sending does not ask.
func TestCheckAsksLinks(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(web.Close)
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, map[string]string{"webhooks.allowPrivate": "true"})
	apptest.People(t, client, "weekly", apptest.Many(3)...)
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.HTML += `<a href="` + web.URL + `/lost">lost</a>`
	})
	check, err := api.CheckCampaign.Do(t.Context(), client, "c1")
	found := ""
	for _, w := range check.Warnings {
		if w.Code == "Link" && strings.Contains(w.Message, "/lost") {
			found = w.Message
		}
	}
	if err != nil || !check.OK || found != web.URL+"/lost answers 404" {
		t.Errorf("%+v, %v", check, err)
	}
	for len(asked) > 0 {
		<-asked
	}
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	if len(asked) > 0 {
		t.Error("sending asked the link")
	}
}
