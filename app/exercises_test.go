package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/outbox/suppression"
)

// exerciseAudience makes a list, subscribers in each state, an import, and a segment that is counted.
func exerciseAudience(t *testing.T, client *api.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := api.UpdateSettings.Do(ctx, client, api.Settings{ServiceURL: new("https://mail.example.com")})
	must(err)
	_, err = api.CreateList.Do(ctx, client, api.List{ListID: "circle", Name: "Circle"})
	must(err)
	_, err = api.CreateSubscriber.Do(ctx, client, api.SubscriberRequest{Email: "pending@example.net",
		Attributes: map[string]any{"plan": "pro"}, Lists: []api.SubscriptionRequest{{ListID: "circle"}}})
	must(err)
	_, err = api.ImportSubscribers.Do(ctx, client, strings.NewReader("email\nfile@example.net\n"),
		api.SubscriberImportOptions{ID: "crm-1", ListID: []string{"circle"}, Consent: "I want it"})
	must(err)
	_, err = api.CreateSegment.Do(ctx, client, api.Segment{Segment: "pros", Name: "Pros",
		Rule: []byte(`{"attribute":"plan","is":"pro"}`)})
	must(err)
	_, err = api.CountSegment.Do(ctx, client, "pros")
	must(err)
}

// exerciseCampaigns sends a campaign with variants to somebody who unsubscribes by it, somebody whom the
// relay refuses, and somebody whom it defers.
func exerciseCampaigns(t *testing.T, base string, client *api.Client, relay *testsmtp.Server) {
	t.Helper()
	paused := false // by exerciseOutbox
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: &paused}, "bulk"); err != nil {
		t.Fatal(err)
	}
	const fails = "rcpt-451+flyer@example.net"
	apptest.People(t, client, "flyers", "leaves@example.net", "rcpt-550+flyer@example.net",
		"rcpt-451-1@example.net",
		fails)
	apptest.WithVariants(t, client, "flyer", "flyers", api.CampaignTrial{Share: 1})
	apptest.SendNow(t, client, "flyer")
	apptest.Eventually(t, "everybody was tried", func() bool {
		s := apptest.Stats(t, client, "flyer").States
		return s.Bounced == 1 && s.Sent+s.Deferred == 3
	})
	replayed := apptest.Recipients(t, client, "flyer", api.CampaignRecipientQuery{})[fails].QueueID
	apptest.Eventually(t, "a message failed, and is replayed", func() bool {
		_, err := api.PatchMessage.Do(t.Context(), client, api.OutboxPatch{DeliveryAttempts: new(2)}, replayed)
		if err == nil {
			_, _ = api.RetryMessage.Do(t.Context(), client, replayed)
		}
		_, err = api.ReplayDeadLetter.Do(t.Context(), client, api.Corrections{}, replayed)
		return err == nil
	})
	for _, m := range relay.Messages() {
		if m.To[0] == "leaves@example.net" && strings.HasPrefix(apptest.Header(t, m, "Subject"), "Subject ") {
			apptest.Follow(t, base, "POST", apptest.Leaving, m, "List-Unsubscribe=One-Click")
		}
	}
	apptest.Eventually(t, "somebody left", func() bool { return apptest.Stats(t, client, "flyer").Left == 1 })
}

// exerciseDigests mails a digest of more events than are kept one by one, removes one, and lets others wait.
func exerciseDigests(t *testing.T, client *api.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := api.CreateDigestKind.Do(ctx, client, api.DigestKind{Category: "comment"})
	must(err)
	event := func(i int) api.DigestEvent {
		return api.DigestEvent{Recipient: "u1", Email: "digest@example.net", Category: "comment",
			EntityType: "post", EntityID: fmt.Sprint(i % 3), Title: "A post",
			Actor:          &api.DigestActor{ID: fmt.Sprint("a", i)},
			IdempotencyKey: fmt.Sprint("k", i)}
	}
	hand := func(from, until int) {
		t.Helper()
		var list []api.DigestEvent
		for i := from; i < until; i++ {
			list = append(list, event(i))
		}
		_, err := api.TakeDigestEvents.Do(ctx, client, api.DigestEventsRequest{Events: list})
		must(err)
	}
	hand(0, 8)
	sent, err := api.SendDigest.Do(ctx, client, api.DigestAccount{}, "u1")
	must(err)
	apptest.Eventually(t, "the digest was sent", func() bool {
		run, err := api.GetDigestRun.Do(ctx, client, sent.Run)
		return err == nil && run.State == api.DigestSent && run.Events == 8
	})
	hand(8, 16)
	_, err = api.DeleteDigestEvents.Do(ctx, client, api.DigestEventRemoval{Recipients: []string{"u1"},
		Key: "k15"})
	must(err)
	later := time.Now().Add(time.Hour)
	_, err = api.PatchDigestRecipient.Do(ctx, client, api.DigestRecipientRequest{PausedUntil: &later}, "u1")
	must(err)
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
	apptest.Tell(t, a.URL(), "generic",
		`{"type":"bounced","bounce":"soft","recipient":"dan@example.net","messageId":"<own@elsewhere.example>"}`)
	for _, kind := range []string{`"complained"`, `"delivered"`, `"opened"`, `"bounced","bounce":"soft"`} {
		apptest.Tell(t, a.URL(), "generic",
			`{"type":`+kind+`,"recipient":"ann@example.net","providerMessageId":"nobody-knows"}`)
	}
	stamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(apptest.TellSecret))
	mac.Write([]byte(stamp + "token"))
	apptest.Tell(t, a.URL(), "mailgun",
		fmt.Sprintf(`{"signature":{"timestamp":%q,"token":"token","signature":%q},"event-data":{"event":"delivered","id":"e","timestamp":%s,"recipient":"ann@example.net"}}`,
			stamp, hex.EncodeToString(mac.Sum(nil)), stamp))
}

// exerciseSuppressions creates entries of all sorts, imports a file, and counts a soft bounce.
func exerciseSuppressions(t *testing.T, client *api.Client, db *redisdb.DB) {
	t.Helper()
	ctx, soon := t.Context(), time.Now().Add(time.Hour)
	if _, err := api.AddSuppressions.Do(ctx, client, api.SuppressionRequest{Suppressions: []api.NewSuppression{
		api.NewSuppression{Email: "gone@example.com", Expires: &soon, Response: "said so"}, api.NewSuppression{
			Domain: "gone.example", Reason: "spam_report", SuppressionScope: api.SuppressionScope{
				Account: "shop", List: "news"}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ImportSuppressions.Do(ctx, client, strings.NewReader("email\nunheard@example.com\n"),
		api.SuppressionImportOptions{}); err != nil {
		t.Fatal(err)
	}
	importFromProvider(t, client)
	store, err := suppression.New(db, suppression.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Soft(ctx, suppression.Entry{Address: "full@example.com", MessageID: "m"},
		time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Confirmed(ctx, suppression.Entry{Address: "dead@example.com", Account: "shop",
		Reason: suppression.HardBounce, MessageID: "m"}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// importFromProvider imports the suppression list of a gateway's provider.
func importFromProvider(t *testing.T, client *api.Client) {
	t.Helper()
	fake := testapi.Start(t, "sendgrid", testapi.Options{Inactive: map[string]string{"dead@example.net": ""}})
	if _, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: "listed", Name: "Listed",
		Type: api.GatewaySendGrid, API: &api.GatewayAPI{Key: "key", URL: fake.URL}}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one compares
		got, err := api.ImportProviderList.Do(t.Context(), client, api.ProviderImportStart{}, "listed")
		if err != nil {
			t.Fatal(err)
		}
		apptest.Eventually(t, "the import has ended", func() bool {
			got, err = api.GetProviderImport.Do(t.Context(), client, "listed")
			return err != nil || got.State != "running"
		})
		if err != nil || got.State != "done" || got.Read != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}
