package e2e_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
)

// TestListsFollowUnsubscribeLinks: the button of a list's email takes its recipient off the list, and the
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
	mail := apptest.News(nil)
	mail.ListID = "weekly"
	if _, err := api.Submit.Do(t.Context(), client, mail); err != nil {
		t.Fatal(err)
	}
	link := strings.Trim(apptest.Header(t, relay.Wait(2)[1], "List-Unsubscribe"), "<>")
	if status, body := apptest.AsRecipient(t, a, "POST", link, "List-Unsubscribe=One-Click"); status != 200 {
		t.Fatalf("one click: %d %s", status, body)
	}
	apptest.Eventually(t, "the list has noticed", func() bool {
		return listCounts(t, client) == (api.ListCounts{Left: 1})
	})
	again, err := api.CreateSubscriber.Do(t.Context(), client, subscriber)
	if err != nil || len(again.Skipped) != 1 || again.Skipped[0].ListID != "weekly" {
		t.Errorf("subscribed again: %+v, %v", again, err)
	}
}
