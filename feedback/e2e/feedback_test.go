package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// A provider's fact about a message appears on its timeline and in webhooks. It suppresses the recipient, who
// gets no further mail.
func TestProvidersAreHeard(t *testing.T) {
	t.Parallel()
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	settings := apptest.FeedbackSettings(t)
	for name, value := range map[string]string{"smtp": relay.URL(), "from": "shop@example.com",
		"webhooks.allowPrivate": "true"} {
		settings[name] = value
	}
	a := apptest.Run(t, settings)
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Text: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	hooks.Wait(t, "messageSent")
	apptest.Tell(t, a.URL(), "generic",
		`{"type":"bounced","bounce":"hard","diagnostic":"550 5.1.1 no such user","recipient":"Ann@example.NET","metadata":{"postroom_id":"`+sent.QueueID+`"}}`)
	hooks.Wait(t, "messageBounce")
	story, err := api.ListMessageEvents.Do(t.Context(), client, sent.QueueID)
	if err != nil {
		t.Fatal(err)
	}
	last := story.Events[len(story.Events)-1]
	if last.Event != "messageBounce" || last.Details == nil || last.Details.BounceType != "hard" ||
		last.Details.Source != "generic" || last.Details.Diagnostic != "550 5.1.1 no such user" {
		t.Errorf("the last event is %+v, %+v", last, last.Details)
	}
	apptest.Eventually(t, "ann is suppressed, and the events API was asked", func() bool {
		status, err := api.GetFeedback.Do(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		return status.Inbox.Urgent == 0 && len(status.Reconciliation) == 1 &&
			status.Reconciliation[0].Position != nil
	})
	again, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Text: "Hello again"})
	if err != nil {
		t.Fatal(err)
	}
	hooks.Wait(t, "messageSuppressed")
	if again.QueueID == sent.QueueID {
		t.Error("the second message is the first")
	}
}

// TestKilledWorkerLosesNoFacts kills Postroom while it applies facts. Another process applies the rest, and
// repeats those in progress. Each bounce is on its timeline and in the event stream once, and each address is
// suppressed.
func TestKilledWorkerLosesNoFacts(t *testing.T) {
	t.Parallel()
	const messages = 300
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 0)
	set := apptest.SettingsFor(t, redis.URL(), relay)
	set["feedback.providers.generic"] = apptest.TellSecret
	first := apptest.Spawn(t, set)
	ids := make([]string, messages)
	for i := range ids {
		answer, err := api.Submit.Do(t.Context(), first.Client, api.SubmitRequest{
			To: api.Addresses{{Address: fmt.Sprintf("ann%d@example.net", i)}}, Text: "Hello"})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = answer.QueueID
	}
	apptest.Empty(t, first.Client)
	var facts []string
	for i, id := range ids {
		facts = append(facts, fmt.Sprintf(
			`{"type":"bounced","bounce":"hard","recipient":"ann%d@example.net","metadata":{"postroom_id":%q}}`, i, id))
	}
	for some := range slices.Chunk(facts, 50) {
		apptest.Tell(t, first.URL, "generic", "["+strings.Join(some, ",")+"]")
	}
	first.Kill()

	second := apptest.Spawn(t, set)
	apptest.Tell(t, second.URL, "generic", "["+strings.Join(facts[:50], ",")+"]") // the answer was lost
	apptest.Eventually(t, "all is applied", func() bool {
		status, err := api.GetFeedback.Do(t.Context(), second.Client)
		if err != nil {
			t.Fatal(err)
		}
		return status.Inbox.Urgent == 0 && len(status.Sources) == 1 && status.Sources[0].Received == messages+50
	})
	told := map[string]int{}
	entries, err := apptest.Connect(t, redis.URL()).Client().XRange(t.Context(), redisdb.Key(0, "events"), "-",
		"+").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values["e"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		var about event.Learned
		if e.Type != event.MessageBounce {
			continue
		}
		if err := json.Unmarshal(e.Data, &about); err != nil {
			t.Fatal(err)
		}
		told[about.QueueID]++
	}
	for _, id := range ids {
		if told[id] != 1 {
			t.Errorf("message %s: %d bounces were told", id, told[id])
		}
	}
	page, err := api.ListSuppressions.Do(t.Context(), second.Client, api.SuppressionQuery{Reason: "hard_bounce"})
	if err != nil || page.Total != messages {
		t.Errorf("%d addresses are suppressed, %v; want %d", page.Total, err, messages)
	}
}
