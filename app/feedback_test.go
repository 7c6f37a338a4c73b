package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

const tellSecret = "a shared secret of the tests"

// eventsAPI is a Mailgun events API without events.
func eventsAPI(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, key, _ := r.BasicAuth(); user != "api" || key != "key" ||
			r.URL.Path != "/v3/mg.example.com/events" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"items":[],"paging":{"next":"x"}}`))
	}))
	t.Cleanup(s.Close)
	return s
}

// feedbackSettings configure two providers with webhooks, and one that is polled.
func feedbackSettings(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"feedback.providers.generic": tellSecret, "feedback.providers.mailgun": tellSecret,
		"feedback.reconcile.mailgun.apiKey": "key", "feedback.reconcile.mailgun.domain": "mg.example.com",
		"feedback.reconcile.mailgun.baseUrl": eventsAPI(t).URL,
	}
}

// tell posts a provider's webhook and checks that it is accepted.
func tell(t *testing.T, url, name, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/webhooks/provider/"+name,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Webhook-Token", tellSecret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", name, answer.Status)
	}
}

// exerciseFeedback posts facts of all sorts: about a message found by the Message-ID of its sender, and about
// an unknown one.
func exerciseFeedback(t *testing.T, a *app.App, client *api.Client) {
	t.Helper()
	if _, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "dan@example.net"}}, Text: "Hello",
		MessageID: "<own@elsewhere.example>"}); err != nil {
		t.Fatal(err)
	}
	// possibly before the message is known
	tell(t, a.URL(), "generic",
		`{"type":"bounced","bounce":"soft","recipient":"dan@example.net","messageId":"<own@elsewhere.example>"}`)
	for _, kind := range []string{`"complained"`, `"delivered"`, `"opened"`, `"bounced","bounce":"soft"`} {
		tell(t, a.URL(), "generic",
			`{"type":`+kind+`,"recipient":"ann@example.net","providerMessageId":"nobody-knows"}`)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(tellSecret))
	mac.Write([]byte(stamp + "token"))
	tell(t, a.URL(), "mailgun",
		fmt.Sprintf(`{"signature":{"timestamp":%q,"token":"token","signature":%q},"event-data":{"event":"delivered","id":"e","timestamp":%s,"recipient":"ann@example.net"}}`,
			stamp, hex.EncodeToString(mac.Sum(nil)), stamp))
}

// A provider's fact about a message appears on its timeline and in webhooks. It suppresses the recipient, who
// gets no further mail.
func TestProvidersAreHeard(t *testing.T) {
	t.Parallel()
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), receive(t)
	settings := feedbackSettings(t)
	for name, value := range map[string]string{"smtp": relay.URL(), "from": "shop@example.com",
		"webhooks.allowPrivate": "true"} {
		settings[name] = value
	}
	a := start(t, settings)
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	sent, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Text: "Hello"})
	if err != nil {
		t.Fatal(err)
	}
	hooks.wait(t, "messageSent")
	tell(t, a.URL(), "generic",
		`{"type":"bounced","bounce":"hard","diagnostic":"550 5.1.1 no such user","recipient":"Ann@example.NET","metadata":{"postroom_id":"`+sent.QueueID+`"}}`)
	hooks.wait(t, "messageBounce")
	story, err := api.ListMessageEvents.Do(t.Context(), client, sent.QueueID)
	if err != nil {
		t.Fatal(err)
	}
	last := story.Events[len(story.Events)-1]
	if last.Event != "messageBounce" || last.Details == nil || last.Details.BounceType != "hard" ||
		last.Details.Source != "generic" || last.Details.Diagnostic != "550 5.1.1 no such user" {
		t.Errorf("the last event is %+v, %+v", last, last.Details)
	}
	eventually(t, "ann is suppressed, and the events API was asked", func() bool {
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
	hooks.wait(t, "messageSuppressed")
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
	redis, relay := testredis.Server(t), slowRelay(t, 0)
	set := settingsFor(t, redis.URL(), relay)
	set["feedback.providers.generic"] = tellSecret
	first := spawn(t, set)
	ids := make([]string, messages)
	for i := range ids {
		answer, err := api.Submit.Do(t.Context(), first.client, api.SubmitRequest{
			To: api.Addresses{{Address: fmt.Sprintf("ann%d@example.net", i)}}, Text: "Hello"})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = answer.QueueID
	}
	empty(t, first.client)
	var facts []string
	for i, id := range ids {
		facts = append(facts, fmt.Sprintf(
			`{"type":"bounced","bounce":"hard","recipient":"ann%d@example.net","metadata":{"postroom_id":%q}}`, i, id))
	}
	for some := range slices.Chunk(facts, 50) {
		tell(t, first.url, "generic", "["+strings.Join(some, ",")+"]")
	}
	first.kill()

	second := spawn(t, set)
	tell(t, second.url, "generic", "["+strings.Join(facts[:50], ",")+"]") // the answer was lost
	eventually(t, "all is applied", func() bool {
		status, err := api.GetFeedback.Do(t.Context(), second.client)
		if err != nil {
			t.Fatal(err)
		}
		return status.Inbox.Urgent == 0 && len(status.Sources) == 1 && status.Sources[0].Received == messages+50
	})
	told := map[string]int{}
	entries, err := connect(t, redis.URL()).Client().XRange(t.Context(), redisdb.Key(0, "events"), "-",
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
	page, err := api.ListSuppressions.Do(t.Context(), second.client, api.SuppressionQuery{Reason: "hard_bounce"})
	if err != nil || page.Total != messages {
		t.Errorf("%d addresses are suppressed, %v; want %d", page.Total, err, messages)
	}
}
