package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestEveryEmailShowsAnUnsubscribeLink: RFC 8058 section 2 and the sender rules of Gmail and Yahoo require a
// visible link in the body, not only the header. check finds a hidden one, and an email without one isn't
// sent.
func TestEveryEmailShowsAnUnsubscribeLink(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(30)...)
	for html, want := range map[string]bool{
		`<p>x</p><a href='{{{rcpt.unsubscribeUrl}}}'>x</a>`:                           true,
		`<p>x</p><A HREF=" {{rcpt.preferencesUrl}}">x</A>`:                            true,
		`<p>x</p><!-- <a href="{{rcpt.unsubscribeUrl}}">x</a> -->`:                    false,
		`<p>x</p><p style="display:none"><a href="{{rcpt.unsubscribeUrl}}">x</a></p>`: false,
		`<p>x</p><a href="{{rcpt.unsubscribeUrl}}"></a>`:                              false,
		`<p>x</p><a href="https://a.example/unsubscribe?t=1">x</a>`:                   false,
		`<p>x</p>{{#if subscriber.attributes.none}}{{rcpt.unsubscribeUrl}}{{/if}}`:    false,
	} {
		for _, text := range []string{"", "Leave: {{rcpt.unsubscribeUrl}}"} {
			id := strings.ToLower(t.Name()) + "-" + string(rune('a'+len(html)%26)) + text[:min(1, len(text))]
			apptest.Draft(t, client, id, "weekly", func(c *api.Campaign) { c.HTML, c.Text = html, text })
			check, err := api.CheckCampaign.Do(t.Context(), client, id)
			if err != nil || check.OK != want || !want && check.Faults[0].Code != "NoUnsubscribeLink" {
				t.Errorf("%s with text %q: %+v, %v", html, text, check, err)
			}
			if _, err := api.DeleteCampaign.Do(t.Context(), client, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := api.UpdateSubscriber.Do(t.Context(), client, api.SubscriberPatch{Name: new("Nora")},
		"p29@example.net")
	if err != nil {
		t.Fatal(err)
	}
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.HTML = `<p>x</p>{{#unless subscriber.name}}<a href="{{rcpt.unsubscribeUrl}}">leave</a>{{/unless}}`
	})
	apptest.SendNow(t, client, "c1")
	st := apptest.Reaches(t, client, "c1", api.CampaignSent)
	failed := apptest.Recipients(t, client, "c1", api.CampaignRecipientQuery{State: "failed"})
	if why := failed["p29@example.net"].Response; st.States.Sent != 29 ||
		apptest.Copies(relay)["p29@example.net"] > 0 ||
		len(failed) != 1 || !strings.Contains(why, "unsubscribe") {
		t.Errorf("%+v, %+v", st.States, failed)
	}
}

// moody is a relay that answers RCPT to each address with the next of its replies, and the final dot with the
// replies of "DOT address". If a reply is empty, or none is left, it answers as usual. close closes the
// connection.
type moody struct {
	*testsmtp.Server
	mu      sync.Mutex
	replies map[string][]string
}

func moodyRelay(t *testing.T) *moody {
	m := &moody{replies: map[string][]string{}}
	m.Server = testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		m.mu.Lock()
		defer m.mu.Unlock()
		key := c.Arg
		if c.Verb == "DOT" {
			key = "DOT " + c.To[0]
		}
		left := m.replies[key]
		if c.Verb != "RCPT" && c.Verb != "DOT" || len(left) == 0 {
			return testsmtp.Action{}
		}
		m.replies[key] = left[1:]
		if left[0] == "close" {
			return testsmtp.Action{Close: true}
		}
		return testsmtp.Action{Reply: left[0]}
	}})
	return m
}

func (m *moody) answers(to string, replies ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies[to] = replies
}

// becomes waits until a recipient of a run has a state.
func becomes(t *testing.T, client *api.Client, run int, address, state string) api.CampaignRecipient {
	t.Helper()
	var r api.CampaignRecipient
	apptest.Eventually(t, address+" is "+state, func() bool {
		r = apptest.Recipients(t, client, "c1", api.CampaignRecipientQuery{Run: run})[address]
		return r.State == state
	})
	return r
}

// TestRowsCountTheAttemptsBeforeAReplay: docs/campaigns.md has all attempts in a row. A replay gives the
// message all its attempts again, but it does not undo those that were made.
func TestRowsCountTheAttemptsBeforeAReplay(t *testing.T) {
	t.Parallel()
	relay := moodyRelay(t)
	client, _ := runCampaigns(t, relay.Server, nil)
	apptest.People(t, client, "weekly", "a@example.net", "b@example.net")
	for _, to := range []string{"a@example.net", "b@example.net"} {
		relay.answers(to, "451 4.3.2 later", "451 4.3.2 later", "554 5.7.1 not now")
	}
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	rows := map[string]api.CampaignRecipient{}
	for _, to := range []string{"a@example.net", "b@example.net"} {
		if rows[to] = becomes(t, client, 1, to, "failed"); rows[to].Attempts != 3 {
			t.Errorf("failed: %+v", rows[to])
		}
	}
	relay.answers("a@example.net", "451 4.3.2 later")
	relay.answers("b@example.net", slices.Repeat([]string{"451 4.3.2 later"}, 100)...)
	for _, r := range rows {
		if _, err := api.ReplayDeadLetter.Do(t.Context(), client, api.Corrections{}, r.QueueID); err != nil {
			t.Fatal(err)
		}
	}
	if a := becomes(t, client, 1, "a@example.net", "sent"); a.Attempts != 5 {
		t.Errorf("sent by the second attempt after the replay: %+v", a)
	}
	apptest.Eventually(t, "b was tried again", func() bool {
		b := apptest.Recipients(t, client, "c1", api.CampaignRecipientQuery{})["b@example.net"]
		if b.State == "deferred" && b.Attempts < 3 {
			t.Errorf("deferred after the replay: %+v", b)
		}
		return b.State == "deferred" && b.Attempts != 3
	})
}

// TestAReplayedDeadLetterIsSentOnce: a replay makes the recipient sent, a resend leaves that recipient out,
// and after a resend there is no replay.
func TestAReplayedDeadLetterIsSentOnce(t *testing.T) {
	t.Parallel()
	relay := moodyRelay(t)
	client, _ := runCampaigns(t, relay.Server, nil)
	apptest.People(t, client, "weekly", "a@example.net", "b@example.net", "c@example.net")
	for _, to := range []string{"a@example.net", "b@example.net"} {
		relay.answers(to, "451 4.3.2 later", "554 5.7.1 not now")
	}
	relay.answers("c@example.net", "451 4.3.2 later")
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	a, b := becomes(t, client, 1, "a@example.net", "failed"), becomes(t, client, 1, "b@example.net", "failed")
	if a.Attempts != 2 || !strings.Contains(a.Response, "554 5.7.1") || a.Time == nil {
		t.Errorf("failed: %+v", a)
	}
	if c := becomes(t, client, 1, "c@example.net", "sent"); c.Attempts != 2 || c.Response != "" ||
		c.Time == nil || c.MessageID != apptest.Header(t, relay.Messages()[0], "Message-Id") {
		t.Errorf("sent after a deferral: %+v", c)
	}
	relay.answers("a@example.net", slices.Repeat([]string{"451 4.3.2 later"}, 100)...)
	if _, err := api.ReplayDeadLetter.Do(t.Context(), client, api.Corrections{}, a.QueueID); err != nil {
		t.Fatal(err)
	}
	becomes(t, client, 1, "a@example.net", "deferred")
	run, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: "failed"}, "c1")
	if err != nil || run.Run != 2 {
		t.Fatalf("%+v, %v", run, err)
	}
	becomes(t, client, 2, "b@example.net", "sent")
	relay.answers("a@example.net")
	if _, err := api.RetryMessage.Do(t.Context(), client, a.QueueID); err != nil {
		t.Fatal(err)
	}
	becomes(t, client, 1, "a@example.net", "sent")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	want := map[string]int{"a@example.net": 1, "b@example.net": 1, "c@example.net": 1}
	if diff := cmp.Diff(want, apptest.Copies(relay.Server)); diff != "" {
		t.Errorf("emails (-want +got):\n%s", diff)
	}
	for name, replay := range map[string]func() error{
		"replay": func() error {
			_, err := api.ReplayDeadLetter.Do(t.Context(), client, api.Corrections{}, b.QueueID)
			return err
		},
		"retry": func() error { _, err := api.RetryMessage.Do(t.Context(), client, b.QueueID); return err },
	} {
		if err := replay(); apptest.Status(err) != http.StatusConflict || !strings.Contains(err.Error(), "second") {
			t.Errorf("%s after the second run: %v", name, err)
		}
	}
	all, err := api.ReplayDeadLetters.Do(t.Context(), client, api.ReplayRequest{IDs: []string{b.QueueID}})
	if err != nil || all.Replayed != 0 || all.Skipped != 1 {
		t.Errorf("all: %+v, %v", all, err)
	}
	if st := apptest.Stats(t, client, "c1"); st.Audience != 3 || st.States.Sent != 3 {
		t.Errorf("all runs: %+v", st.CampaignNumbers)
	}
}

// TestNumbersOfEachRun: all runs together have each person once, and a run for no one isn't started.
func TestNumbersOfEachRun(t *testing.T) {
	t.Parallel()
	relay := moodyRelay(t)
	client, _ := runCampaigns(t, relay.Server, nil)
	apptest.People(t, client, "weekly", "a@example.net", "b@example.net", "c@example.net")
	relay.answers("b@example.net", "554 5.7.1 not now")
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	again := func(to string) api.CampaignRun {
		t.Helper()
		run, err := api.ResendCampaign.Do(t.Context(), client, api.CampaignResend{To: to}, "c1")
		if err != nil {
			t.Fatal(err)
		}
		apptest.Reaches(t, client, "c1", api.CampaignSent)
		return run
	}
	if run := again("newcomers"); run.Run != 1 || run.State != api.CampaignSent || run.Reason == "" {
		t.Errorf("a run for nobody: %+v", run)
	}
	again("failed")
	again("notOpened")
	for n, want := range []api.CampaignStates{{Sent: 3}, {Sent: 2, Failed: 1}, {Sent: 1}, {Sent: 3}} {
		st, err := api.GetCampaignStats.Do(t.Context(), client, api.CampaignStatsQuery{Run: n}, "c1")
		if err != nil || st.States != want || st.Audience != want.Total() || len(st.Runs) != 3 {
			t.Errorf("run %d: %+v, %v", n, st, err)
		}
		if n > 0 && st.Runs[n-1].States != want {
			t.Errorf("run %d beside the others: %+v", n, st.Runs)
		}
	}
	info, err := api.GetCampaign.Do(t.Context(), client, "c1")
	if err != nil || info.States != (api.CampaignStates{Sent: 3}) {
		t.Errorf("%+v, %v", info.States, err)
	}
	_, err = api.GetCampaignStats.Do(t.Context(), client, api.CampaignStatsQuery{Run: 4}, "c1")
	if apptest.Status(err) != http.StatusBadRequest {
		t.Errorf("a run that is not there: %v", err)
	}
}

// checked returns the codes of the faults and warnings of a campaign.
func checked(t *testing.T, client *api.Client, id string) (faults, warnings []string) {
	t.Helper()
	check, err := api.CheckCampaign.Do(t.Context(), client, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range check.Faults {
		faults = append(faults, f.Code+": "+f.Message)
	}
	for _, w := range check.Warnings {
		warnings = append(warnings, w.Code+": "+w.Message)
	}
	return faults, warnings
}

// TestCheckFindsEmptyVariables: a link to a public page that doesn't exist, and names that people lack.
func TestCheckFindsEmptyVariables(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", "a@example.net")
	apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.Archive = true
		c.HTML += `<a href="{{campaign.archiveUrl}}">view</a>`
	})
	faults, warnings := checked(t, client, "c1")
	if !strings.Contains(strings.Join(faults, "\n"), "NoArchive") ||
		!strings.Contains(strings.Join(warnings, "\n"), "NoArchive") {
		t.Errorf("no public list: %v, %v", faults, warnings)
	}
	info, err := api.GetCampaign.Do(t.Context(), client, "c1")
	if err != nil || len(info.Warnings) != 1 || info.Warnings[0].Code != "NoArchive" {
		t.Errorf("the campaign does not warn: %+v, %v", info.Warnings, err)
	}
	if _, err := api.UpdateList.Do(t.Context(), client, api.ListPatch{Public: new(true)}, "weekly"); err != nil {
		t.Fatal(err)
	}
	if info, err = api.GetCampaign.Do(t.Context(), client, "c1"); err != nil || len(info.Warnings) > 0 {
		t.Errorf("a public list: %+v, %v", info.Warnings, err)
	}
	if faults, warnings := checked(t, client, "c1"); len(faults) > 0 || slices.ContainsFunc(warnings,
		func(w string) bool { return strings.HasPrefix(w, "NoArchive") }) {
		t.Errorf("a public list: %v, %v", faults, warnings)
	}
	apptest.Draft(t, client, "c2", "weekly", func(c *api.Campaign) {
		c.HTML = "Hi {{subscriber.name}}" +
			apptest.LetterHTML
	})
	if _, warnings := checked(t, client, "c2"); !strings.Contains(fmt.Sprint(warnings), "subscriber.name") {
		t.Errorf("a missing name: %v", warnings)
	}
	_, err = api.UpdateCampaign.Do(t.Context(), client,
		api.CampaignPatch{Fallbacks: []byte(`{"name":"friend"}`)}, "c2")
	if err != nil {
		t.Fatal(err)
	}
	if _, warnings := checked(t, client, "c2"); strings.Contains(fmt.Sprint(warnings), "subscriber.name") {
		t.Errorf("a fallback: %v", warnings)
	}
	apptest.SendNow(t, client, "c2")
	apptest.Reaches(t, client, "c2", api.CampaignSent)
	m := relay.Messages()[0]
	if !strings.Contains(string(m.Data), "Hi friend") {
		t.Errorf("no fallback in\n%s", m.Data)
	}
	if apptest.Header(t, m, "Precedence") != "bulk" || apptest.Header(t, m, "Auto-Submitted") != "" {
		t.Errorf("marks of bulk mail in\n%s", m.Data)
	}
}

// archivedOfRecipients counts the events about campaign recipients in an archive.
func archivedOfRecipients(t *testing.T, dir string) map[event.Type]int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "events-*.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	has := map[event.Type]int{}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, `\"subscriber\":\"s`) {
				var e struct{ Event event.Type }
				if json.Unmarshal([]byte(line), &e) == nil {
					has[e.Event]++
				}
			}
		}
	}
	return has
}

// TestTheArchiveHasTheDeferralsOfACampaign: "every event", whatever the campaign's events are.
func TestTheArchiveHasTheDeferralsOfACampaign(t *testing.T) {
	t.Parallel()
	for _, events := range []string{"none", "ends", "all"} {
		t.Run(events, func(t *testing.T) {
			t.Parallel()
			relay, dir := moodyRelay(t), t.TempDir()
			client, _ := runCampaigns(t, relay.Server, map[string]string{"archive.dir": dir})
			apptest.People(t, client, "weekly", "a@example.net")
			relay.answers("a@example.net", "451 4.3.2 later", "451 4.3.2 later")
			apptest.Draft(t, client, "c1", "weekly", func(c *api.Campaign) { c.Events = events })
			apptest.SendNow(t, client, "c1")
			apptest.Reaches(t, client, "c1", api.CampaignSent)
			apptest.Eventually(t, "the archive has the events", func() bool {
				has := archivedOfRecipients(t, dir)
				return has[event.MessageQueued] == 1 && has[event.MessageDeliveryError] == 2 &&
					has[event.MessageSent] == 1
			})
		})
	}
}

// TestTheArchiveHasAllEventsOfACampaign, and webhooks get the events of alone only.
func TestTheArchiveHasAllEventsOfACampaign(t *testing.T) {
	t.Parallel()
	relay, dir := testsmtp.Start(t, testsmtp.Options{}), t.TempDir()
	client, base := runCampaigns(t, relay, map[string]string{"archive.dir": dir,
		"webhooks.allowPrivate": "true"})
	hooks := apptest.Receive(t)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	apptest.People(t, client, "weekly", "a@example.net", "rcpt-550@example.net")
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	apptest.Follow(t, base, "GET", apptest.Pixel, relay.Messages()[0], "")
	apptest.Follow(t, base, "GET", apptest.Clicked, relay.Messages()[0], "")
	apptest.Eventually(t, "the archive has the events", func() bool {
		has := archivedOfRecipients(t, dir)
		return has[event.MessageSent] == 1 && has[event.MessageFailed] == 1 && has[event.TrackOpen] == 1 &&
			has[event.TrackClick] == 1
	})
	hooks.Wait(t, event.MessageFailed)
	hooks.Mu.Lock()
	defer hooks.Mu.Unlock()
	for _, h := range hooks.Got {
		if slices.Contains([]event.Type{event.MessageSent, event.TrackOpen, event.TrackClick}, h.Event) {
			t.Errorf("a webhook got %s", h.Event)
		}
	}
}

// TestNamesOfCampaignsHaveNoControls, and an ID made from a name says of what kind it is.
func TestNamesOfCampaignsHaveNoControls(t *testing.T) {
	t.Parallel()
	client, _ := runCampaigns(t, testsmtp.Start(t, testsmtp.Options{}), nil)
	ctx, rule := t.Context(), []byte(`{"tag":"a"}`)
	for what, do := range map[string]func(name string) error{
		"list": func(name string) error {
			_, err := api.CreateList.Do(ctx, client, api.List{Name: name})
			return err
		},
		"segment": func(name string) error {
			_, err := api.CreateSegment.Do(ctx, client, api.Segment{Name: name, Rule: rule})
			return err
		},
		"campaign": func(name string) error {
			_, err := api.CreateCampaign.Do(ctx, client, api.Campaign{Name: name})
			return err
		},
		"sender": func(name string) error {
			from := &api.Address{Name: name, Address: "a@example.com"}
			_, err := api.CreateCampaign.Do(ctx, client, api.Campaign{Name: "x" + name[:1],
				CampaignContent: api.CampaignContent{From: from}})
			return err
		},
	} {
		for _, name := range []string{"Ctl\r\nBcc: v@x.example", "News\x00", "Bell\a", "C\u0085", "L\u2028"} {
			if err := do(name); apptest.Status(err) != http.StatusBadRequest {
				t.Errorf("%s %q: %v", what, name, err)
			}
		}
	}
	made, err := api.CreateSegment.Do(ctx, client, api.Segment{Name: "春のお知らせ", Rule: rule})
	if err != nil || !strings.HasPrefix(made.Segment.Segment, "segment-") {
		t.Errorf("%+v, %v", made, err)
	}
}
