package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// rest stops the queue bulk, or continues it.
func rest(t *testing.T, client *api.Client, paused bool) {
	t.Helper()
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: &paused}, "bulk"); err != nil {
		t.Fatal(err)
	}
}

// TestCampaignKeepsItsRateFromBelow: 60 messages at 10 a second take six seconds, evenly, however many
// workers there are. The first message after a pause comes soon.
func TestCampaignKeepsItsRateFromBelow(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(60)...)
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) { c.Rate = 10 })
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	mails := relay.Messages()
	took, gap := mails[59].Time.Sub(mails[0].Time), time.Duration(0)
	for i := range mails[1:] {
		gap = max(gap, mails[i+1].Time.Sub(mails[i].Time))
	}
	t.Logf("%s, the longest gap is %s", took, gap)
	if took < 5300*time.Millisecond || took > apptest.Patience {
		t.Errorf("60 mails at 10 a second took %s; the longest gap is %s", took, gap)
	}

	apptest.Draft(t, client, "c2", "weekly", func(c *api.Campaign) { c.Rate = 5 })
	apptest.SendNow(t, client, "c2")
	relay.Wait(70)
	if _, err := api.PauseCampaign.Do(t.Context(), client, "c2"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "what was under way is over", func() bool {
		return apptest.Stats(t, client,
			"c2").States.Sending == 0
	})
	rate := 40.0
	if _, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Rate: &rate}, "c2"); err != nil {
		t.Fatal(err)
	}
	before, resumed := relay.Count(), time.Now()
	if _, err := api.ResumeCampaign.Do(t.Context(), client, "c2"); err != nil {
		t.Fatal(err)
	}
	apptest.Reaches(t, client, "c2", api.CampaignSent)
	mails = relay.Messages()[before:]
	first, took := mails[0].Time.Sub(resumed), mails[len(mails)-1].Time.Sub(mails[0].Time)
	t.Logf("the first after %s, %d within %s", first, len(mails), took)
	if first > apptest.Patience || took > apptest.Patience {
		t.Errorf("after the pause, the first of %d mails came after %s, and all took %s", len(mails), first, took)
	}
}

// TestCampaignJudgesPeopleAtTheirTurn: whoever is changed, deleted, taken off the list or not selected any
// more while the campaign is sent is not mailed as before.
func TestCampaignJudgesPeopleAtTheirTurn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(80)...)
	apptest.People(t, client, "never", "other@example.net")
	segmentBy(t, client, "pro", `{"attribute":"plan","is":"pro"}`)
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.Rate, c.Segments, c.ExcludeLists = 10, []string{"pro"}, []string{"never"}
	})
	apptest.SendNow(t, client, "c1")
	relay.Wait(5)
	moved, name := "new@example.net", "New Name"
	for _, change := range []error{
		func() error {
			_, err := api.UpdateSubscriber.Do(ctx, client, api.SubscriberPatch{Email: &moved, Name: &name},
				"p74@example.net")
			return err
		}(),
		func() error {
			_, err := api.DeleteSubscriber.Do(ctx, client, api.SubscriberAccount{}, "p75@example.net")
			return err
		}(),
		func() error {
			_, err := api.UpdateSubscriber.Do(ctx, client,
				api.SubscriberPatch{Attributes: map[string]any{"plan": "free"}}, "p76@example.net")
			return err
		}(),
	} {
		if change != nil {
			t.Fatal(change)
		}
	}
	apptest.People(t, client, "never", "p77@example.net")
	if st := apptest.Reaches(t, client, "c1", api.CampaignSent); st.States.Sent != 77 {
		t.Errorf("%+v", st.States)
	}
	got := apptest.Copies(relay)
	for _, gone := range []string{"p74@example.net", "p75@example.net", "p76@example.net", "p77@example.net"} {
		if got[gone] != 0 {
			t.Errorf("%s was mailed", gone)
		}
	}
	if got[moved] != 1 || len(got) != 77 {
		t.Errorf("%d people have the mail, %s has %d", len(got), moved, got[moved])
	}
	for _, m := range relay.Messages() {
		if m.To[0] == moved && !strings.Contains(apptest.Header(t, m, "To"), name) {
			t.Errorf("To: %s", apptest.Header(t, m, "To"))
		}
	}
}

// TestDeferredPeopleGetTheNewContent: deferred people get the campaign's content at the time when it
// continues, and are judged again.
func TestDeferredPeopleGetTheNewContent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var away atomic.Bool
	away.Store(true)
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if away.Load() && c.Verb == "RCPT" {
			return testsmtp.Action{Reply: "451 4.3.2 try later"}
		}
		return testsmtp.Action{}
	}})
	client, _ := runCampaigns(t, relay, map[string]string{"delivery.retry.base": "3s",
		"delivery.retry.jitter": "0"})
	apptest.People(t, client, "weekly", apptest.Many(6)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Eventually(t, "all are put off", func() bool {
		return apptest.Stats(t, client,
			"c1").States.Deferred == 6
	})
	began := *apptest.Stats(t, client, "c1").Started
	apptest.Eventually(t, "it began in another second", func() bool { return time.Now().Unix() > began.Unix() })
	if _, err := api.PauseCampaign.Do(ctx, client, "c1"); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"Wrong again", "Right"} {
		html := `<p>` + subject + `</p><a href="{{rcpt.unsubscribeUrl}}">leave</a>`
		_, err := api.UpdateCampaign.Do(ctx, client, api.CampaignPatch{Subject: &subject, HTML: &html}, "c1")
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := api.DeleteSubscriber.Do(ctx, client, api.SubscriberAccount{}, "p0@example.net"); err != nil {
		t.Fatal(err)
	}
	_, err := api.LeaveList.Do(ctx, client, api.SubscriberAccount{}, "p1@example.net", "weekly")
	if err != nil {
		t.Fatal(err)
	}
	moved := "new@example.net"
	_, err = api.UpdateSubscriber.Do(ctx, client, api.SubscriberPatch{Email: &moved}, "p2@example.net")
	if err != nil {
		t.Fatal(err)
	}
	away.Store(false)
	if _, err := api.ResumeCampaign.Do(ctx, client, "c1"); err != nil {
		t.Fatal(err)
	}
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if diff := cmp.Diff(api.CampaignStates{Sent: 4, Failed: 1, Unsubscribed: 1}, st.States); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var to []string
	for _, m := range relay.Messages() {
		to = append(to, m.To[0])
		if s := apptest.Header(t, m, "Subject"); s != "Right" || !strings.Contains(string(m.Data), "<p>Right</p>") {
			t.Errorf("%s got %q", m.To[0], s)
		}
	}
	slices.Sort(to)
	want := []string{moved, "p3@example.net", "p4@example.net", "p5@example.net"}
	if diff := cmp.Diff(want, to); diff != "" {
		t.Errorf("mailed (-want +got):\n%s", diff)
	}
}

// TestRetriesOfACampaignWaitAsLongAsThoseOfAnyMail: the waits double from the first one on, and the attempt
// of the campaign itself counts.
func TestRetriesOfACampaignWaitAsLongAsThoseOfAnyMail(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var tried []time.Time
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb != "RCPT" {
			return testsmtp.Action{}
		}
		mu.Lock()
		defer mu.Unlock()
		tried = append(tried, time.Now())
		return testsmtp.Action{Reply: "451 4.3.2 try later"}
	}})
	client, _ := runCampaigns(t, relay, map[string]string{"delivery.retry.jitter": "0",
		"delivery.attempts": "3"})
	apptest.People(t, client, "weekly", apptest.Many(1)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	if st := apptest.Reaches(t, client, "c1", api.CampaignSent); st.States.Failed != 1 {
		t.Errorf("%+v", st.States)
	}
	page, err := api.ListDeadLetters.Do(t.Context(), client, api.DeadLetterQuery{})
	if err != nil || len(page.DeadLetters) != 1 || page.DeadLetters[0].AttemptsMade != 3 {
		t.Errorf("dead letters: %+v, %v", page, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(tried) != 3 || tried[1].Sub(tried[0]) < 1900*time.Millisecond ||
		tried[2].Sub(tried[1]) < 3900*time.Millisecond {
		t.Errorf("tried at %v; the waits must be 2 s and 4 s", tried)
	}
}

// TestWhoeverLeavesIsUnsubscribed: by whichever door, of the list or of all mail. Any other reason is
// suppressed, and the row says which.
func TestWhoeverLeavesIsUnsubscribed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(5)...)
	rest(t, client, true)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	began := *apptest.Stats(t, client, "c1").Started
	apptest.Eventually(t, "it began in another second", func() bool { return time.Now().Unix() > began.Unix() })
	if _, err := api.LeaveList.Do(ctx, client, api.SubscriberAccount{}, "p0@example.net", "weekly"); err != nil {
		t.Fatal(err)
	}
	for _, one := range []api.NewSuppression{
		{Email: "p1@example.net", Reason: "unsubscribe", SuppressionScope: api.SuppressionScope{Account: "default",
			List: "weekly"}},
		{Email: "p2@example.net", Reason: "unsubscribe",
			SuppressionScope: api.SuppressionScope{Account: "default"}},
		{Email: "p3@example.net", Reason: "spam_report"},
	} {
		_, err := api.AddSuppressions.Do(ctx, client, api.SuppressionRequest{NewSuppression: one})
		if err != nil {
			t.Fatal(err)
		}
	}
	rest(t, client, false)
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if diff := cmp.Diff(api.CampaignStates{Sent: 1, Unsubscribed: 3, Suppressed: 1}, st.States); diff != "" {
		page, _ := api.ListCampaignRecipients.Do(ctx, client, api.CampaignRecipientQuery{}, "c1")
		t.Errorf("(-want +got):\n%s%+v", diff, page.Recipients)
	}
	page, err := api.ListCampaignRecipients.Do(ctx, client,
		api.CampaignRecipientQuery{State: "suppressed"}, "c1")
	if err != nil || len(page.Recipients) != 1 || !strings.Contains(page.Recipients[0].Response, "spam_report") {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestRelaySeesNobodyWhoHasLeft: once an unsubscribe was answered, no relay learns the address.
func TestRelaySeesNobodyWhoHasLeft(t *testing.T) {
	t.Parallel()
	var left sync.Map
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if at, ok := left.Load(c.Arg); ok && c.Verb == "RCPT" {
			// the envelope may have been on its way when the answer came
			if late := time.Since(at.(time.Time)); late > 500*time.Millisecond {
				t.Errorf("%s was named %s after leaving", c.Arg, late)
			}
		}
		return testsmtp.Action{Delay: 5 * time.Millisecond}
	}})
	client, _ := runCampaigns(t, relay, map[string]string{"workers.bulk": "2"})
	apptest.People(t, client, "weekly", apptest.Many(300)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	began := *apptest.Stats(t, client, "c1").Started
	relay.Wait(10)
	apptest.Eventually(t, "it began in another second", func() bool { return time.Now().Unix() > began.Unix() })
	for i := 299; i > 20; i -= 5 {
		address := fmt.Sprintf("p%d@example.net", i)
		if _, err := api.LeaveList.Do(t.Context(), client, api.SubscriberAccount{}, address, "weekly"); err != nil {
			t.Fatal(err)
		}
		left.Store(address, time.Now())
	}
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if st.States.Unsubscribed == 0 || st.States.Sent+st.States.Unsubscribed != 300 {
		t.Errorf("%+v", st.States)
	}
}

// TestNoDotAfterLeaving: someone who unsubscribes while a slow relay thinks about their address gets no mail,
// whatever concurrent messages have learnt of the suppressions by then.
func TestNoDotAfterLeaving(t *testing.T) {
	t.Parallel()
	const everybody = 40
	odd := func(address string) bool {
		var n int
		_, err := fmt.Sscanf(address, "p%d@", &n)
		return err == nil && n%2 == 1
	}
	var leaver atomic.Pointer[api.Client]
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "RCPT" && odd(c.Arg) {
			_, err := api.LeaveList.Do(t.Context(), leaver.Load(), api.SubscriberAccount{}, c.Arg, "weekly")
			if err != nil {
				t.Error(err)
			}
		}
		return testsmtp.Action{Delay: 20 * time.Millisecond}
	}})
	client, _ := runCampaigns(t, relay, nil)
	leaver.Store(client)
	apptest.People(t, client, "weekly", apptest.Many(everybody)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	if want := (api.CampaignStates{Sent: everybody / 2, Unsubscribed: everybody / 2}); st.States != want {
		t.Errorf("%+v, want %+v", st.States, want)
	}
	for _, m := range relay.Messages() {
		if odd(m.To[0]) {
			t.Errorf("%s got the mail after leaving", m.To[0])
		}
	}
}

// TestVerbsAtTheSameMoment: a double click isn't an error, and begins one run.
func TestVerbsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	relay := apptest.SlowRelay(t, 20*time.Millisecond)
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(400)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	for _, verb := range []struct {
		state string
		do    func() (api.CampaignRun, error)
	}{
		{api.CampaignSending, func() (api.CampaignRun, error) {
			return api.SendCampaign.Do(t.Context(), client, api.CampaignStart{}, "c1")
		}},
		{api.CampaignPaused, func() (api.CampaignRun, error) {
			return api.PauseCampaign.Do(t.Context(), client, "c1")
		}},
		{api.CampaignSending, func() (api.CampaignRun, error) {
			return api.ResumeCampaign.Do(t.Context(), client, "c1")
		}},
		{api.CampaignCancelled, func() (api.CampaignRun, error) {
			return api.CancelCampaign.Do(t.Context(), client, "c1")
		}},
	} {
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if run, err := verb.do(); err != nil || run.State != verb.state || run.Run != 1 {
					t.Errorf("%s: %+v, %v", verb.state, run, err)
				}
			})
		}
		all.Wait()
	}
	_, err := api.SendCampaign.Do(t.Context(), client, api.CampaignStart{}, "c1")
	if apptest.Status(err) != http.StatusConflict || codeOf(err) != "CampaignState" {
		t.Errorf("send after cancel: %v", err)
	}
}

// TestResendsAtTheSameMoment: they begin one run, too.
func TestResendsAtTheSameMoment(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	relay := testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "RCPT" && slow.Load() {
			return testsmtp.Action{Delay: 3 * time.Second}
		}
		return testsmtp.Action{}
	}})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(40)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	slow.Store(true)
	again := func() {
		run, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "notOpened"}, "c1")
		if err != nil || run.State != api.CampaignSending || run.Run != 2 {
			t.Errorf("%+v, %v", run, err)
		}
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(again)
	}
	all.Wait()
	again() // it is under way
	_, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "failed"}, "c1")
	if apptest.Status(err) != http.StatusConflict || codeOf(err) != "CampaignState" {
		t.Errorf("to others, while it is sent: %v", err)
	}
	if _, err := api.CancelCampaign.Do(t.Context(), client, "c1"); err != nil {
		t.Error(err)
	}
}

// TestSendOfWhatCanNotBegin: a cancelled draft, a time that is past, and times that leave no room.
func TestSendOfWhatCanNotBegin(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(1)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	if _, err := api.CancelCampaign.Do(ctx, client, "c1"); err != nil {
		t.Fatal(err)
	}
	_, err := api.SendCampaign.Do(ctx, client, api.CampaignStart{}, "c1")
	if apptest.Status(err) != http.StatusConflict || codeOf(err) != "CampaignState" {
		t.Errorf("a cancelled draft: %v", err)
	}
	end := time.Now().Add(time.Hour)
	apptest.Draft(t, client, "c2", "weekly", func(c *api.Campaign) { c.EndAt = &end })
	past := time.Now().Add(-6 * time.Minute).UTC().Format("2006-01-02T15:04")
	_, err = api.SendCampaign.Do(ctx, client, api.CampaignStart{At: past}, "c2")
	if apptest.Status(err) != http.StatusBadRequest || !strings.Contains(err.Error(), past) {
		t.Errorf("six minutes ago: %v", err)
	}
	late := end.Add(time.Minute).Format(time.RFC3339)
	if _, err = api.SendCampaign.Do(ctx, client, api.CampaignStart{At: late}, "c2"); codeOf(err) !=
		"CampaignRefused" || !strings.Contains(err.Error(), "but its endAt is") {
		t.Errorf("after its end: %v", err)
	}
	just := time.Now().Add(-4 * time.Minute).Format(time.RFC3339)
	run, err := api.SendCampaign.Do(ctx, client, api.CampaignStart{At: just}, "c2")
	if err != nil || run.State != api.CampaignSending {
		t.Errorf("four minutes ago: %+v, %v", run, err)
	}
	over := time.Now().Add(-time.Hour)
	apptest.Draft(t, client, "c3", "weekly", func(c *api.Campaign) { c.EndAt = &over })
	check, err := api.CheckCampaign.Do(ctx, client, "c3")
	if err != nil || check.OK || check.Faults[0].Code != "NoTime" {
		t.Errorf("%+v, %v", check, err)
	}
}
