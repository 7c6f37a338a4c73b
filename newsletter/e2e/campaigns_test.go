package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestCampaignStates sends to people of every kind. Each gets the mail once or has the state that says why
// not, and the counters match the ledger.
func TestCampaignStates(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, map[string]string{"newsletter.holdAfter": "1000",
		"webhooks.allowPrivate": "true"})
	hooks := apptest.Receive(t)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	good := apptest.Many(150)
	apptest.People(t, client, "weekly", append(good, "rcpt-550@example.net", "dot-554@example.net",
		"rcpt-451-1@example.net",
		"dot-close@example.net", "barred@example.net", "gone@example.net", "vip@example.net")...)
	apptest.People(t, client, "other", "p0@example.net", "vip@example.net")
	apptest.People(t, client, "staff", "vip@example.net")
	_, err := api.AddSuppressions.Do(t.Context(), client, api.SuppressionRequest{
		NewSuppression: api.NewSuppression{Email: "barred@example.net"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.LeaveList.Do(t.Context(), client, api.SubscriberAccount{}, "gone@example.net", "weekly")
	if err != nil {
		t.Fatal(err)
	}
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.Lists, c.ExcludeLists = append(c.Lists, "other"), []string{"staff"}
	})
	var all sync.WaitGroup
	for range 4 { // a double click starts one run
		all.Go(func() { apptest.SendNow(t, client, "c1") })
	}
	all.Wait()
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	want := api.CampaignStates{Sent: len(good) + 1, Suppressed: 1, Bounced: 1, Failed: 1, InDoubt: 1}
	if diff := cmp.Diff(want, st.States); diff != "" || st.Audience != len(good)+5 {
		t.Errorf("audience %d, states (-want +got):\n%s", st.Audience, diff)
	}
	got := apptest.Copies(relay)
	for _, to := range append(good, "rcpt-451-1@example.net", "dot-close@example.net") {
		if got[to] != 1 {
			t.Errorf("%s got %d mails", to, got[to])
		}
	}
	if len(got) != len(good)+2 {
		t.Errorf("%d people got mail", len(got))
	}
	recount, err := api.RecountCampaign.Do(t.Context(), client, "c1")
	if err != nil || recount.Changed {
		t.Errorf("recount: %+v, %v", recount, err)
	}
	for state, address := range map[string]string{"suppressed": "barred@example.net",
		"failed":  "dot-554@example.net",
		"bounced": "rcpt-550@example.net", "inDoubt": "dot-close@example.net"} {
		page, err := api.ListCampaignRecipients.Do(t.Context(), client, api.CampaignRecipientQuery{State: state},
			"c1")
		if err != nil || len(page.Recipients) != 1 || page.Recipients[0].Email != address {
			t.Errorf("%s: %+v, %v", state, page, err)
		}
	}
	if data := hooks.Wait(t, event.MessageFailed); data.Campaign == nil || data.Campaign.Campaign != "c1" {
		t.Errorf("messageFailed: %+v", data)
	}
	hooks.Wait(t, event.CampaignFinished)
	settled, err := api.SettleCampaign.Do(t.Context(), client, api.CampaignSettle{All: true}, "c1")
	if err != nil || settled.Settled != 1 || apptest.Stats(t, client, "c1").States.InDoubt != 0 {
		t.Errorf("settled: %+v, %v", settled, err)
	}
	resendToFailed(t, client, relay)
}

// resendToFailed sends a campaign again to people it failed for: here one.
func resendToFailed(t *testing.T, client *api.Client, relay *testsmtp.Server) {
	t.Helper()
	before := relay.Count()
	run, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "failed"}, "c1")
	if err != nil || run.Run != 2 {
		t.Fatalf("%+v, %v", run, err)
	}
	apptest.Eventually(t, "the second run is over", func() bool {
		st := apptest.Stats(t, client, "c1")
		return st.State == api.CampaignSent && st.Run == 2
	})
	run2 := apptest.Stats(t, client, "c1").Runs[1]
	if run2.Audience != 1 || run2.States.Failed != 1 || relay.Count() != before {
		t.Errorf("the second run: %+v", run2)
	}
	apptest.People(t, client, "weekly", "late@example.net")
	if _, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "newcomers"},
		"c1"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the newcomer has the mail",
		func() bool { return apptest.Copies(relay)["late@example.net"] == 1 })
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if run := st.Runs[2]; run.States.Sent != 1 {
		t.Errorf("the third run: %+v", run)
	}
}

// TestCampaignVerbs pauses, changes, resumes and cancels. After the answer to a pause no mail reaches its
// dot.
func TestCampaignVerbs(t *testing.T) {
	t.Parallel()
	relay := apptest.SlowRelay(t, 10*time.Millisecond)
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(600)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	relay.Wait(50)
	run, err := api.PauseCampaign.Do(t.Context(), client, "c1")
	if err != nil || run.State != api.CampaignPaused {
		t.Fatalf("%+v, %v", run, err)
	}
	apptest.Eventually(t, "what was under way is over", func() bool {
		return apptest.Stats(t, client,
			"c1").States.Sending == 0
	})
	paused := apptest.Stats(t, client, "c1")
	if n := relay.Count(); n == 600 || paused.States.Sent != n || paused.Audience != 600 ||
		paused.States.Waiting != 600-n {
		t.Errorf("%d mails, %+v", n, paused)
	}
	subject := "Changed"
	if _, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Subject: &subject},
		"c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.DeleteCampaign.Do(t.Context(), client, "c1"); apptest.Status(err) != http.StatusConflict {
		t.Errorf("deleted while paused: %v", err)
	}
	if _, err := api.DeleteList.Do(t.Context(), client, "weekly"); apptest.Status(err) != http.StatusConflict ||
		!strings.Contains(err.Error(), "c1") {
		t.Errorf("its list was deleted: %v", err)
	}
	if _, err := api.ResumeCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Subject: &subject},
		"c1"); apptest.Status(err) != http.StatusConflict {
		t.Errorf("changed while sending: %v", err)
	}
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	changed := 0
	for to, n := range apptest.Copies(relay) {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
	for _, m := range relay.Messages() {
		if apptest.Header(t, m, "Subject") == subject {
			changed++
		}
	}
	if st.States.Sent != 600 || changed != 600-paused.States.Sent {
		t.Errorf("%+v, %d with the new subject", st.States, changed)
	}
	apptest.Draft(t, client, "c2", "weekly", nil)
	apptest.SendNow(t, client, "c2")
	relay.Wait(650)
	if _, err := api.CancelCampaign.Do(t.Context(), client, "c2"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "what was under way is over", func() bool {
		return apptest.Stats(t, client,
			"c2").States.Sending == 0
	})
	if st := apptest.Stats(t, client, "c2"); st.States.Sent+st.States.Cancelled != 600 ||
		st.States.Cancelled == 0 ||
		relay.Count() != 600+st.States.Sent {
		t.Errorf("cancelled: %+v, %d mails", st.States, relay.Count())
	}
	if deleted, err := api.DeleteCampaign.Do(t.Context(), client, "c2"); err != nil || !deleted.Deleted {
		t.Errorf("deleted: %+v, %v", deleted, err)
	}
}

// TestCampaignWaitsForItsRelay: while the relay takes no mail no one is deferred, and afterwards everybody
// gets the mail.
func TestCampaignWaitsForItsRelay(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	away := true
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		mu.Lock()
		defer mu.Unlock()
		if away && c.Verb == "CONNECT" {
			return testsmtp.Action{Reply: "421 4.3.2 later", Close: true}
		}
		return testsmtp.Action{}
	}})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(120)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Eventually(t, "the relay was tried", func() bool { return relay.Connections() > 1 })
	apptest.Eventually(t, "the batches are given back", func() bool {
		st := apptest.Stats(t, client, "c1")
		return st.States.Sending == 0 && st.States.Waiting == 120
	})
	mu.Lock()
	away = false
	mu.Unlock()
	if st := apptest.Reaches(t, client, "c1", api.CampaignSent); st.States.Sent != 120 {
		t.Errorf("%+v", st.States)
	}
}

// TestCampaignOfKilledProcesses kills Postroom again and again. Everybody gets the mail once; whom a kill
// caught at the dot is in doubt, and has it once or not at all.
func TestCampaignOfKilledProcesses(t *testing.T) {
	t.Parallel()
	const all, kills = 1500, 3
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 3*time.Millisecond)
	set := apptest.SettingsFor(t, redis.URL(), relay)
	set["serviceUrl"] = "https://mail.example.com"
	p := apptest.Spawn(t, set)
	apptest.People(t, p.Client, "weekly", apptest.Many(all)...)
	apptest.Draft(t, p.Client, "c1", "weekly", nil)
	apptest.SendNow(t, p.Client, "c1")
	for n := range kills {
		relay.Wait((n + 1) * all / (kills + 2))
		p.Kill()
		p = apptest.Spawn(t, set)
	}
	var st api.CampaignStats
	deadline := time.Now().Add(2 * time.Minute)
	for st = apptest.Stats(t, p.Client, "c1"); st.State != api.CampaignSent && time.Now().Before(deadline); {
		apptest.Eventually(t, "somebody is mailed, or all were", func() bool {
			before := st
			st = apptest.Stats(t, p.Client, "c1")
			return st.State == api.CampaignSent || st.States != before.States
		})
	}
	got := apptest.Copies(relay)
	for to, n := range got {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
	if st.States.Sent+st.States.InDoubt != all || len(got) < st.States.Sent || st.Audience != all {
		t.Errorf("%+v; %d people have the mail", st, len(got))
	}
	if most := kills * 50; st.States.InDoubt > most {
		t.Errorf("%d are in doubt, at most %d mails were under way", st.States.InDoubt, most)
	}
	t.Logf("%d in doubt after %d kills; %d of %d have the mail", st.States.InDoubt, kills, len(got), all)
}

// TestCampaignLearns: opens, clicks and leaving by the links of an email are counted, once for each person.
func TestCampaignLearns(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, base := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(3)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	browse := func(method string, link *regexp.Regexp, m testsmtp.Message, body string) {
		t.Helper()
		apptest.Follow(t, base, method, link, m, body)
	}
	mails := relay.Messages()
	browse("GET", apptest.Pixel, mails[0], "")
	browse("GET", apptest.Pixel, mails[0], "")
	apptest.Eventually(t, "a click is not that of a scanner", func() bool {
		return time.Since(*apptest.Stats(t, client, "c1").Started) > 2*time.Second
	})
	browse("GET", apptest.Clicked, mails[1], "")
	browse("POST", apptest.Leaving, mails[2], "List-Unsubscribe=One-Click")
	apptest.Eventually(t, "all is counted", func() bool {
		st := apptest.Stats(t, client, "c1")
		return st.Opened >= 1 && st.OpenedTotal >= 1 && st.Clicked == 1 && st.Left == 1
	})
	st := apptest.Stats(t, client, "c1")
	if len(st.Links) != 1 || st.Links[0] != (api.CampaignLink{
		URL: "https://shop.test/sale?who={{subscriber.id}}", Clicks: 1}) {
		t.Errorf("links: %+v", st.Links)
	}
	if len(st.Domains) != 1 || st.Domains[0].Sent != 3 || len(st.Hours) == 0 {
		t.Errorf("%+v", st)
	}
	apptest.Eventually(t, "the person left the list", func() bool {
		return listCounts(t, client) == (api.ListCounts{Subscribed: 2, Left: 1})
	})
	apptest.Draft(t, client, "c2", "weekly", nil)
	apptest.SendNow(t, client, "c2")
	if st := apptest.Reaches(t, client, "c2", api.CampaignSent); st.Audience != 2 || st.States.Sent != 2 {
		t.Errorf("the next campaign: %+v", st)
	}
}

// TestCampaignIsHeld: a campaign whose people do not exist stops automatically, reports it once, and
// continues when an operator wants that.
func TestCampaignIsHeld(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, map[string]string{"newsletter.holdAfter": "20",
		"alerts.every": "1s"})
	dead := make([]string, 150)
	for i := range dead {
		dead[i] = fmt.Sprintf("rcpt-550+%d@example.net", i)
	}
	apptest.People(t, client, "weekly", dead...)
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) { c.Rate = 50 })
	apptest.SendNow(t, client, "c1")
	st := apptest.Reaches(t, client, "c1", api.CampaignHeld)
	if st.States.Bounced < 20 || st.States.Bounced == len(dead) {
		t.Errorf("held with %+v", st.States)
	}
	info, err := api.GetCampaign.Do(t.Context(), client, "c1")
	if err != nil || info.Reason != "bounces" || !strings.Contains(info.Detail, "100.0 %") {
		t.Errorf("%+v, %v", info, err)
	}
	apptest.Eventually(t, "an alert is raised", func() bool {
		alerts, err := api.GetStats.Do(t.Context(), client, api.CounterQuery{})
		return err == nil && len(alerts.Alerts) == 1 && alerts.Alerts[0].Alert == "campaignHeld"
	})
	if _, err := api.ResumeCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Fatal(err)
	}
	if st := apptest.Reaches(t, client, "c1", api.CampaignSent); st.States.Bounced != len(dead) {
		t.Errorf("in the end: %+v", st.States)
	}
}

// TestCampaignKeepsItsTime: it begins when it is due, not faster than its rate, and emails people in the
// hours of their own zone.
func TestCampaignKeepsItsTime(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(60)...)
	_, err := api.CreateSubscriber.Do(t.Context(), client, api.SubscriberRequest{Email: "far@example.net",
		TZ: "Pacific/Kiritimati", Lists: []api.SubscriptionRequest{{ListID: "weekly"}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.Rate, c.TZ = 20, "Europe/Zurich"
		c.Window = &api.CampaignWindow{From: now.Add(-time.Hour).In(zurich(t)).Format("15:04"),
			Until: now.Add(time.Hour).In(zurich(t)).Format("15:04"), Of: "recipient"}
	})
	for _, at := range []string{"9999-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2030-03-31T02:30", "soon"} {
		_, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{At: at}, "c1")
		if apptest.Status(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "at") {
			t.Errorf("at %s: %v", at, err)
		}
	}
	due := time.Now().Add(2 * time.Second).UTC()
	run, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{At: due.Format(time.RFC3339Nano)},
		"c1")
	if err != nil || run.State != api.CampaignScheduled || run.At == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	apptest.Eventually(t, "all but one have the mail", func() bool { return relay.Count() == 60 })
	st := apptest.Stats(t, client, "c1")
	if st.State != api.CampaignSending || st.Started == nil ||
		st.Started.Before(due.Truncate(time.Millisecond)) {
		t.Errorf("due %s: %+v", due, st)
	}
	mails := relay.Messages()
	if took := mails[59].Time.Sub(mails[0].Time); took < 1500*time.Millisecond {
		t.Errorf("60 mails within %s, 20 a second are allowed", took)
	}
	apptest.Eventually(t, "one waits for the hours of their zone", func() bool {
		st := apptest.Stats(t, client, "c1")
		return st.States.Sent == 60 && st.States.Waiting == 1
	})
	if _, err := api.CancelCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Fatal(err)
	}
	if st := apptest.Stats(t, client, "c1"); st.States.Cancelled != 1 || relay.Count() != 60 {
		t.Errorf("in the end: %+v", st.States)
	}
}

// TestCampaignKeepsToTheLimitOfItsGateway: the emails that wait for the limit go one after the other, none of
// them is deferred, and the limit is used to the full.
func TestCampaignKeepsToTheLimitOfItsGateway(t *testing.T) {
	t.Parallel()
	const all, perSecond = 200, 50
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	_, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: "news", Name: "News",
		Host: relay.Host(),
		Port: relay.Port(), Limits: &api.Limits{PerSecond: perSecond}})
	if err != nil {
		t.Fatal(err)
	}
	apptest.People(t, client, "weekly", apptest.Many(all)...)
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) { c.Gateway = "news" })
	apptest.SendNow(t, client, "c1")
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	mails := relay.Messages()
	took := mails[len(mails)-1].Time.Sub(mails[0].Time).Seconds()
	if least := float64(all-perSecond) / perSecond; st.States.Sent != all || took < 0.9*least ||
		took > 10*least {
		t.Errorf("%+v within %.1f s, %.1f s are needed", st.States, took, least)
	}
}

func zurich(t *testing.T) *time.Location {
	t.Helper()
	zone, err := schedule.Zone("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestCampaignOfTwoProcesses: processes that share a Redis send a campaign together, over several partitions
// of the outbox.
func TestCampaignOfTwoProcesses(t *testing.T) {
	t.Parallel()
	const all = 1000
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 2*time.Millisecond)
	set := apptest.SettingsFor(t, redis.URL(), relay)
	set["serviceUrl"], set["redis.partitions"] = "https://mail.example.com", "4"
	one, two := apptest.Spawn(t, set), apptest.Spawn(t, maps.Clone(set))
	apptest.People(t, one.Client, "weekly", append(apptest.Many(all), "rcpt-451-1@example.net")...)
	apptest.Draft(t, one.Client, "c1", "weekly", nil)
	apptest.SendNow(t, two.Client, "c1")
	st := apptest.Reaches(t, one.Client, "c1", api.CampaignSent)
	if st.States.Sent != all+1 || relay.Count() != all+1 {
		t.Errorf("%+v, %d mails", st.States, relay.Count())
	}
	for to, n := range apptest.Copies(relay) {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
}
