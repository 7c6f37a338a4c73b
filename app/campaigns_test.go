package app_test

import (
	"errors"
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
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// people subscribes addresses to a list of single opt-in, which is made if it does not exist.
func people(t *testing.T, client *api.Client, list string, addresses ...string) {
	t.Helper()
	if _, err := api.GetList.Do(t.Context(), client, list); err != nil {
		_, err := api.CreateList.Do(t.Context(), client, api.List{ListID: list, Name: list, OptIn: "single"})
		if err != nil {
			t.Fatal(err)
		}
	}
	file := "email,attributes.plan\n"
	for _, one := range addresses {
		file += one + ",pro\n"
	}
	done, err := api.ImportSubscribers.Do(t.Context(), client, strings.NewReader(file),
		api.SubscriberImportOptions{ListID: []string{list}, State: "subscribed", Consent: "test"})
	if err != nil || done.Bad > 0 {
		t.Fatalf("%+v, %v", done, err)
	}
}

// many returns addresses that the relay accepts.
func many(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("p%d@example.net", i)
	}
	return list
}

// letterHTML is the content of campaigns in tests.
const letterHTML = `<p>Hello {{subscriber.email}}, {{subscriber.attributes.plan}}</p>` +
	`<a href="https://shop.test/sale?who={{subscriber.id}}">Sale</a> <a href="{{rcpt.unsubscribeUrl}}">leave</a>`

// draft stores a campaign to a list.
func draft(t *testing.T, client *api.Client, id, list string, change func(*api.Campaign)) {
	t.Helper()
	c := api.Campaign{Campaign: id, Name: "News " + id, Lists: []string{list},
		CampaignContent: api.CampaignContent{Subject: "News", HTML: letterHTML}}
	if change != nil {
		change(&c)
	}
	if _, err := api.CreateCampaign.Do(t.Context(), client, c); err != nil {
		t.Fatal(err)
	}
}

// sendNow begins a campaign.
func sendNow(t *testing.T, client *api.Client, id string) {
	t.Helper()
	run, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{}, id)
	if err != nil || run.State != api.CampaignSending || run.Run != 1 {
		t.Fatalf("%+v, %v", run, err)
	}
}

// stats returns the numbers of a campaign.
func stats(t *testing.T, client *api.Client, id string) api.CampaignStats {
	t.Helper()
	st, err := api.GetCampaignStats.Do(t.Context(), client, api.CampaignStatsQuery{}, id)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// reaches waits for a state of a campaign.
func reaches(t *testing.T, client *api.Client, id, state string) api.CampaignStats {
	t.Helper()
	var st api.CampaignStats
	eventually(t, "campaign "+id+" is "+state, func() bool {
		st = stats(t, client, id)
		return st.State == state
	})
	return st
}

// copies counts the mails that a relay got for each address.
func copies(relay *testsmtp.Server) map[string]int {
	got := map[string]int{}
	for _, m := range relay.Messages() {
		for _, to := range m.To {
			got[to]++
		}
	}
	return got
}

func startCampaigns(t *testing.T, relay *testsmtp.Server, more map[string]string) (*api.Client, string) {
	t.Helper()
	set := map[string]string{"smtp": relay.URL(), "from": "Shop <shop@example.com>",
		"serviceUrl": "https://mail.example.com", "tracking.opens": "true", "tracking.clicks": "true",
		"delivery.retry.base": "1s"}
	for k, v := range more {
		set[k] = v
	}
	a := start(t, set)
	return api.NewClient(a.URL(), a.Token(), nil), a.URL()
}

// TestCampaignStates sends to people of every kind. Each gets the mail once or has the state that says why
// not, and the counters are those of the ledger.
func TestCampaignStates(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := startCampaigns(t, relay, map[string]string{"newsletter.holdAfter": "1000",
		"webhooks.allowPrivate": "true"})
	hooks := receive(t)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	good := many(150)
	people(t, client, "weekly", append(good, "rcpt-550@example.net", "dot-554@example.net",
		"rcpt-451-1@example.net",
		"dot-close@example.net", "barred@example.net", "gone@example.net", "vip@example.net")...)
	people(t, client, "other", "p0@example.net", "vip@example.net")
	people(t, client, "staff", "vip@example.net")
	_, err := api.AddSuppressions.Do(t.Context(), client, api.SuppressionRequest{
		NewSuppression: api.NewSuppression{Email: "barred@example.net"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.LeaveList.Do(t.Context(), client, api.SubscriberAccount{}, "gone@example.net", "weekly")
	if err != nil {
		t.Fatal(err)
	}
	draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.Lists, c.ExcludeLists = append(c.Lists, "other"), []string{"staff"}
	})
	var all sync.WaitGroup
	for range 4 { // a double click starts one run
		all.Go(func() { sendNow(t, client, "c1") })
	}
	all.Wait()
	st := reaches(t, client, "c1", api.CampaignSent)
	want := api.CampaignStates{Sent: len(good) + 1, Suppressed: 1, Bounced: 1, Failed: 1, InDoubt: 1}
	if diff := cmp.Diff(want, st.States); diff != "" || st.Audience != len(good)+5 {
		t.Errorf("audience %d, states (-want +got):\n%s", st.Audience, diff)
	}
	got := copies(relay)
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
	if data := hooks.wait(t, event.MessageFailed); data.Campaign == nil || data.Campaign.Campaign != "c1" {
		t.Errorf("messageFailed: %+v", data)
	}
	hooks.wait(t, event.CampaignFinished)
	settled, err := api.SettleCampaign.Do(t.Context(), client, api.CampaignSettle{All: true}, "c1")
	if err != nil || settled.Settled != 1 || stats(t, client, "c1").States.InDoubt != 0 {
		t.Errorf("settled: %+v, %v", settled, err)
	}
	resendToFailed(t, client, relay)
}

// resendToFailed sends a campaign again to those it failed for: here one.
func resendToFailed(t *testing.T, client *api.Client, relay *testsmtp.Server) {
	t.Helper()
	before := relay.Count()
	run, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "failed"}, "c1")
	if err != nil || run.Run != 2 {
		t.Fatalf("%+v, %v", run, err)
	}
	eventually(t, "the second run is over", func() bool {
		st := stats(t, client, "c1")
		return st.State == api.CampaignSent && st.Run == 2
	})
	run2 := stats(t, client, "c1").Runs[1]
	if run2.Audience != 1 || run2.States.Failed != 1 || relay.Count() != before {
		t.Errorf("the second run: %+v", run2)
	}
	people(t, client, "weekly", "late@example.net")
	if _, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "newcomers"},
		"c1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the newcomer has the mail", func() bool { return copies(relay)["late@example.net"] == 1 })
	st := reaches(t, client, "c1", api.CampaignSent)
	if run := st.Runs[2]; run.States.Sent != 1 {
		t.Errorf("the third run: %+v", run)
	}
}

// TestCampaignVerbs pauses, changes, resumes and cancels. After the answer to a pause no mail reaches its
// dot.
func TestCampaignVerbs(t *testing.T) {
	t.Parallel()
	relay := slowRelay(t, 10*time.Millisecond)
	client, _ := startCampaigns(t, relay, nil)
	people(t, client, "weekly", many(600)...)
	draft(t, client, "c1", "weekly", nil)
	sendNow(t, client, "c1")
	relay.Wait(50)
	run, err := api.PauseCampaign.Do(t.Context(), client, "c1")
	if err != nil || run.State != api.CampaignPaused {
		t.Fatalf("%+v, %v", run, err)
	}
	eventually(t, "what was under way is over", func() bool {
		return stats(t, client,
			"c1").States.Sending == 0
	})
	paused := stats(t, client, "c1")
	if n := relay.Count(); n == 600 || paused.States.Sent != n || paused.Audience != 600 ||
		paused.States.Waiting != 600-n {
		t.Errorf("%d mails, %+v", n, paused)
	}
	subject := "Changed"
	if _, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Subject: &subject},
		"c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.DeleteCampaign.Do(t.Context(), client, "c1"); status(err) != http.StatusConflict {
		t.Errorf("deleted while paused: %v", err)
	}
	if _, err := api.DeleteList.Do(t.Context(), client, "weekly"); status(err) != http.StatusConflict ||
		!strings.Contains(err.Error(), "c1") {
		t.Errorf("its list was deleted: %v", err)
	}
	if _, err := api.ResumeCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Fatal(err)
	}
	if _, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Subject: &subject},
		"c1"); status(err) != http.StatusConflict {
		t.Errorf("changed while sending: %v", err)
	}
	st := reaches(t, client, "c1", api.CampaignSent)
	changed := 0
	for to, n := range copies(relay) {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
	for _, m := range relay.Messages() {
		if header(t, m, "Subject") == subject {
			changed++
		}
	}
	if st.States.Sent != 600 || changed != 600-paused.States.Sent {
		t.Errorf("%+v, %d with the new subject", st.States, changed)
	}
	draft(t, client, "c2", "weekly", nil)
	sendNow(t, client, "c2")
	relay.Wait(650)
	if _, err := api.CancelCampaign.Do(t.Context(), client, "c2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was under way is over", func() bool {
		return stats(t, client,
			"c2").States.Sending == 0
	})
	if st := stats(t, client, "c2"); st.States.Sent+st.States.Cancelled != 600 || st.States.Cancelled == 0 ||
		relay.Count() != 600+st.States.Sent {
		t.Errorf("cancelled: %+v, %d mails", st.States, relay.Count())
	}
	if deleted, err := api.DeleteCampaign.Do(t.Context(), client, "c2"); err != nil || !deleted.Deleted {
		t.Errorf("deleted: %+v, %v", deleted, err)
	}
}

// status returns the status of the answer that an error is made of; 0: of none.
func status(err error) int {
	p, ok := errors.AsType[*api.Failure](err)
	if !ok {
		return 0
	}
	return p.Problem.StatusCode
}

// TestCampaignWaitsForItsRelay: while the relay takes no mail nobody is deferred, and afterwards everybody
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
	client, _ := startCampaigns(t, relay, nil)
	people(t, client, "weekly", many(120)...)
	draft(t, client, "c1", "weekly", nil)
	sendNow(t, client, "c1")
	eventually(t, "the relay was tried", func() bool { return relay.Connections() > 1 })
	eventually(t, "the batches are given back", func() bool {
		st := stats(t, client, "c1")
		return st.States.Sending == 0 && st.States.Waiting == 120
	})
	mu.Lock()
	away = false
	mu.Unlock()
	if st := reaches(t, client, "c1", api.CampaignSent); st.States.Sent != 120 {
		t.Errorf("%+v", st.States)
	}
}

// TestCampaignOfKilledProcesses kills Postroom again and again. Everybody gets the mail once; whom a kill
// caught at the dot is in doubt, and has it once or not at all.
func TestCampaignOfKilledProcesses(t *testing.T) {
	t.Parallel()
	const all, kills = 1500, 3
	redis, relay := testredis.Server(t), slowRelay(t, 3*time.Millisecond)
	set := settingsFor(t, redis.URL(), relay)
	set["serviceUrl"] = "https://mail.example.com"
	p := spawn(t, set)
	people(t, p.client, "weekly", many(all)...)
	draft(t, p.client, "c1", "weekly", nil)
	sendNow(t, p.client, "c1")
	for n := range kills {
		relay.Wait((n + 1) * all / (kills + 2))
		p.kill()
		p = spawn(t, set)
	}
	var st api.CampaignStats
	deadline := time.Now().Add(2 * time.Minute)
	for st = stats(t, p.client, "c1"); st.State != api.CampaignSent && time.Now().Before(deadline); {
		eventually(t, "somebody is mailed, or all were", func() bool {
			before := st
			st = stats(t, p.client, "c1")
			return st.State == api.CampaignSent || st.States != before.States
		})
	}
	got := copies(relay)
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

var (
	pixel   = regexp.MustCompile(`https://mail\.example\.com(/o/[\w-]+)`)
	clicked = regexp.MustCompile(`https://mail\.example\.com(/c/[\w-]+)`)
	leaving = regexp.MustCompile(`https://mail\.example\.com(/unsubscribe\?t=[\w-]+)`)
)

// follow asks the Postroom at base for a link of a mail, as a browser does.
func follow(t *testing.T, base, method string, link *regexp.Regexp, m testsmtp.Message, body string) {
	t.Helper()
	text := strings.ReplaceAll(strings.ReplaceAll(string(m.Data), "=\r\n", ""), "=3D", "=")
	text = strings.ReplaceAll(text, "&#x3D;", "=")
	found := link.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no link %s in\n%s", link, text)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, base+found[1], strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d", method, found[1], res.StatusCode)
	}
}

// exerciseCampaigns sends a campaign with variants to somebody who leaves by it, somebody whom the relay
// refuses, and somebody whom it puts off.
func exerciseCampaigns(t *testing.T, base string, client *api.Client, relay *testsmtp.Server) {
	t.Helper()
	paused := false // by exerciseOutbox
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: &paused}, "bulk"); err != nil {
		t.Fatal(err)
	}
	const fails = "rcpt-451+flyer@example.net"
	people(t, client, "flyers", "leaves@example.net", "rcpt-550+flyer@example.net", "rcpt-451-1@example.net",
		fails)
	withVariants(t, client, "flyer", "flyers", api.CampaignTrial{Share: 1})
	sendNow(t, client, "flyer")
	eventually(t, "everybody was tried", func() bool {
		s := stats(t, client, "flyer").States
		return s.Bounced == 1 && s.Sent+s.Deferred == 3
	})
	replayed := recipients(t, client, "flyer", api.CampaignRecipientQuery{})[fails].QueueID
	eventually(t, "a message failed, and is replayed", func() bool {
		_, err := api.PatchMessage.Do(t.Context(), client, api.OutboxPatch{DeliveryAttempts: new(2)}, replayed)
		if err == nil {
			_, _ = api.RetryMessage.Do(t.Context(), client, replayed)
		}
		_, err = api.ReplayDeadLetter.Do(t.Context(), client, api.Corrections{}, replayed)
		return err == nil
	})
	for _, m := range relay.Messages() {
		if m.To[0] == "leaves@example.net" && strings.HasPrefix(header(t, m, "Subject"), "Subject ") {
			follow(t, base, "POST", leaving, m, "List-Unsubscribe=One-Click")
		}
	}
	eventually(t, "somebody left", func() bool { return stats(t, client, "flyer").Left == 1 })
}

// TestCampaignLearns: opens, clicks and leaving by the links of a mail are counted, once for each person.
func TestCampaignLearns(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, base := startCampaigns(t, relay, nil)
	people(t, client, "weekly", many(3)...)
	draft(t, client, "c1", "weekly", nil)
	sendNow(t, client, "c1")
	reaches(t, client, "c1", api.CampaignSent)
	browse := func(method string, link *regexp.Regexp, m testsmtp.Message, body string) {
		t.Helper()
		follow(t, base, method, link, m, body)
	}
	mails := relay.Messages()
	browse("GET", pixel, mails[0], "")
	browse("GET", pixel, mails[0], "")
	eventually(t, "a click is not that of a scanner", func() bool {
		return time.Since(*stats(t, client, "c1").Started) > 2*time.Second
	})
	browse("GET", clicked, mails[1], "")
	browse("POST", leaving, mails[2], "List-Unsubscribe=One-Click")
	eventually(t, "all is counted", func() bool {
		st := stats(t, client, "c1")
		return st.Opened >= 1 && st.OpenedTotal >= 1 && st.Clicked == 1 && st.Left == 1
	})
	st := stats(t, client, "c1")
	if len(st.Links) != 1 || st.Links[0] != (api.CampaignLink{
		URL: "https://shop.test/sale?who={{subscriber.id}}", Clicks: 1}) {
		t.Errorf("links: %+v", st.Links)
	}
	if len(st.Domains) != 1 || st.Domains[0].Sent != 3 || len(st.Hours) == 0 {
		t.Errorf("%+v", st)
	}
	eventually(t, "the person left the list", func() bool {
		return counts(t, client) == (api.ListCounts{Subscribed: 2, Left: 1})
	})
	draft(t, client, "c2", "weekly", nil)
	sendNow(t, client, "c2")
	if st := reaches(t, client, "c2", api.CampaignSent); st.Audience != 2 || st.States.Sent != 2 {
		t.Errorf("the next campaign: %+v", st)
	}
}

// TestCampaignIsHeld: a campaign whose people do not exist stops by itself, says so once, and goes on when an
// operator wants that.
func TestCampaignIsHeld(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := startCampaigns(t, relay, map[string]string{"newsletter.holdAfter": "20", "alerts.every": "1s"})
	dead := make([]string, 150)
	for i := range dead {
		dead[i] = fmt.Sprintf("rcpt-550+%d@example.net", i)
	}
	people(t, client, "weekly", dead...)
	draft(t, client, "c1", "weekly", func(c *api.Campaign) { c.Rate = 50 })
	sendNow(t, client, "c1")
	st := reaches(t, client, "c1", api.CampaignHeld)
	if st.States.Bounced < 20 || st.States.Bounced == len(dead) {
		t.Errorf("held with %+v", st.States)
	}
	info, err := api.GetCampaign.Do(t.Context(), client, "c1")
	if err != nil || info.Reason != "bounces" || !strings.Contains(info.Detail, "100.0 %") {
		t.Errorf("%+v, %v", info, err)
	}
	eventually(t, "an alert is raised", func() bool {
		alerts, err := api.GetStats.Do(t.Context(), client, api.CounterQuery{})
		return err == nil && len(alerts.Alerts) == 1 && alerts.Alerts[0].Alert == "campaignHeld"
	})
	if _, err := api.ResumeCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Fatal(err)
	}
	if st := reaches(t, client, "c1", api.CampaignSent); st.States.Bounced != len(dead) {
		t.Errorf("in the end: %+v", st.States)
	}
}

// TestCampaignKeepsItsTime: it begins when it is due, not faster than its rate, and mails people in the hours
// of their own zone.
func TestCampaignKeepsItsTime(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := startCampaigns(t, relay, nil)
	people(t, client, "weekly", many(60)...)
	_, err := api.CreateSubscriber.Do(t.Context(), client, api.SubscriberRequest{Email: "far@example.net",
		TZ: "Pacific/Kiritimati", Lists: []api.SubscriptionRequest{{ListID: "weekly"}}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.Rate, c.TZ = 20, "Europe/Zurich"
		c.Window = &api.CampaignWindow{From: now.Add(-time.Hour).In(zurich(t)).Format("15:04"),
			Until: now.Add(time.Hour).In(zurich(t)).Format("15:04"), Of: "recipient"}
	})
	for _, at := range []string{"9999-01-01T00:00:00Z", "2020-01-01T00:00:00Z", "2030-03-31T02:30", "soon"} {
		_, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{At: at}, "c1")
		if status(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "at") {
			t.Errorf("at %s: %v", at, err)
		}
	}
	due := time.Now().Add(2 * time.Second).UTC()
	run, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{At: due.Format(time.RFC3339Nano)},
		"c1")
	if err != nil || run.State != api.CampaignScheduled || run.At == nil {
		t.Fatalf("%+v, %v", run, err)
	}
	eventually(t, "all but one have the mail", func() bool { return relay.Count() == 60 })
	st := stats(t, client, "c1")
	if st.State != api.CampaignSending || st.Started == nil ||
		st.Started.Before(due.Truncate(time.Millisecond)) {
		t.Errorf("due %s: %+v", due, st)
	}
	mails := relay.Messages()
	if took := mails[59].Time.Sub(mails[0].Time); took < 1500*time.Millisecond {
		t.Errorf("60 mails within %s, 20 a second are allowed", took)
	}
	eventually(t, "one waits for the hours of their zone", func() bool {
		st := stats(t, client, "c1")
		return st.States.Sent == 60 && st.States.Waiting == 1
	})
	if _, err := api.CancelCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Fatal(err)
	}
	if st := stats(t, client, "c1"); st.States.Cancelled != 1 || relay.Count() != 60 {
		t.Errorf("in the end: %+v", st.States)
	}
}

// TestCampaignKeepsToTheLimitOfItsGateway: the mails that wait for the limit go one after the other, none of
// them is deferred, and the limit is used to the full.
func TestCampaignKeepsToTheLimitOfItsGateway(t *testing.T) {
	t.Parallel()
	const all, perSecond = 200, 50
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := startCampaigns(t, relay, nil)
	_, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: "news", Name: "News",
		Host: relay.Host(),
		Port: relay.Port(), Limits: &api.Limits{PerSecond: perSecond}})
	if err != nil {
		t.Fatal(err)
	}
	people(t, client, "weekly", many(all)...)
	draft(t, client, "c1", "weekly", func(c *api.Campaign) { c.Gateway = "news" })
	sendNow(t, client, "c1")
	st := reaches(t, client, "c1", api.CampaignSent)
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
	redis, relay := testredis.Server(t), slowRelay(t, 2*time.Millisecond)
	set := settingsFor(t, redis.URL(), relay)
	set["serviceUrl"], set["redis.partitions"] = "https://mail.example.com", "4"
	one, two := spawn(t, set), spawn(t, maps.Clone(set))
	people(t, one.client, "weekly", append(many(all), "rcpt-451-1@example.net")...)
	draft(t, one.client, "c1", "weekly", nil)
	sendNow(t, two.client, "c1")
	st := reaches(t, one.client, "c1", api.CampaignSent)
	if st.States.Sent != all+1 || relay.Count() != all+1 {
		t.Errorf("%+v, %d mails", st.States, relay.Count())
	}
	for to, n := range copies(relay) {
		if n != 1 {
			t.Errorf("%s got %d mails", to, n)
		}
	}
}
