package app_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
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

// TestListsFollowUnsubscribeLinks: the button of a mail of a list takes its recipient off the list, and the
// next change by a program does not bring the recipient back.
func TestListsFollowUnsubscribeLinks(t *testing.T) {
	t.Parallel()
	a, client, relay := startPublic(t, nil)
	subscriber := api.SubscriberRequest{Email: "ann@example.net", Upsert: true,
		Lists:   []api.SubscriptionRequest{{ListID: "weekly", State: "subscribed"}},
		Consent: &api.Consent{Source: "fair"}}
	if _, err := api.CreateSubscriber.Do(t.Context(), client, subscriber); err != nil {
		t.Fatal(err)
	}
	relay.Wait(1) // the welcome
	mail := news(nil)
	mail.ListID = "weekly"
	if _, err := api.Submit.Do(t.Context(), client, mail); err != nil {
		t.Fatal(err)
	}
	link := strings.Trim(header(t, relay.Wait(2)[1], "List-Unsubscribe"), "<>")
	if status, body := asRecipient(t, a, "POST", link, "List-Unsubscribe=One-Click"); status != 200 {
		t.Fatalf("one click: %d %s", status, body)
	}
	eventually(t, "the list has noticed", func() bool {
		return counts(t, client) == (api.ListCounts{Left: 1})
	})
	again, err := api.CreateSubscriber.Do(t.Context(), client, subscriber)
	if err != nil || len(again.Skipped) != 1 || again.Skipped[0].ListID != "weekly" {
		t.Errorf("subscribed again: %+v, %v", again, err)
	}
}
