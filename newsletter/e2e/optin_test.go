package e2e_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// startPublic starts a Postroom with a public list.
func startPublic(t *testing.T, more map[string]string) (*app.App, *api.Client, *testsmtp.Server) {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	settings := map[string]string{"smtp": relay.URL(), "from": "Shop <shop@example.com>",
		"serviceUrl": "https://mail.example.com", "tracking.opens": "true", "tracking.clicks": "true"}
	for k, v := range more {
		settings[k] = v
	}
	a := apptest.Run(t, settings)
	client := api.NewClient(a.URL(), a.Token(), nil)
	_, err := api.CreateList.Do(t.Context(), client, api.List{ListID: "weekly", Name: "Weekly news",
		Public:  true,
		Welcome: &api.ListMail{Subject: "Welcome to {{list.name}}", Text: "Hello {{subscriber.name}}"}})
	if err != nil {
		t.Fatal(err)
	}
	return a, client, relay
}

func formOf(email string) string {
	return url.Values{"listId": {"weekly"}, "email": {email}, "name": {"Ann"}, "locale": {"en"}}.Encode()
}

var confirmLink = regexp.MustCompile(`https://mail\.example\.com/subscribers/confirm\?t=[\w-]+`)

// linkIn returns the link that an email asks by.
func linkIn(t *testing.T, m testsmtp.Message) string {
	t.Helper()
	link := confirmLink.FindString(strings.ReplaceAll(string(m.Data), "=\r\n", ""))
	link = strings.Replace(link, "?t=3D", "?t=", 1) // quoted-printable
	if link == "" {
		t.Fatalf("no link:\n%s", m.Data)
	}
	return link
}

// TestFormToSubscription goes the way of a visitor: form, mail, link, button. Scanners that follow the link
// subscribe nobody, a link that is forged or cut is not found, and two clicks at once are one.
func TestFormToSubscription(t *testing.T) {
	t.Parallel()
	a, client, relay := startPublic(t, nil)
	if status, page := apptest.AsRecipient(t, a, "GET", "/subscribers?listId=weekly", ""); status != 200 ||
		!strings.Contains(page, "Weekly news") || !strings.Contains(page, `name="website"`) ||
		strings.Contains(page, "<script") || strings.Contains(page, "noindex") {
		t.Errorf("the form: %d\n%s", status, page)
	}
	if status, page := apptest.AsRecipient(t, a, "POST", "/subscribers",
		formOf("ann@example.net")); status != 200 ||
		!strings.Contains(page, "Thank you") {
		t.Fatalf("%d\n%s", status, page)
	}
	mails := relay.Wait(1)
	if apptest.Header(t, mails[0], "List-Unsubscribe") != "" || apptest.Header(t, mails[0],
		"Auto-Submitted") != "auto-generated" ||
		strings.Contains(string(mails[0].Data), "/o/") || strings.Contains(string(mails[0].Data), "Ann") {
		t.Errorf("the mail:\n%s", mails[0].Data)
	}
	link := linkIn(t, mails[0])
	for _, method := range []string{"GET", "HEAD", "GET"} {
		apptest.AsRecipient(t, a, method, link, "")
	}
	if status, page := apptest.AsRecipient(t, a, "GET", link, ""); status != 200 || !strings.Contains(page,
		"<button") ||
		!strings.Contains(page, "a…@example.net") {
		t.Errorf("the page of the link: %d\n%s", status, page)
	}
	if got := listCounts(t, client); got != (api.ListCounts{Pending: 1}) {
		t.Fatalf("a scanner changed something: %+v", got)
	}
	token := strings.TrimPrefix(link, "https://mail.example.com/subscribers/confirm?t=")
	for _, forged := range []string{token[:len(token)-2], "x" + token, ""} {
		if status, _ := apptest.AsRecipient(t, a, "POST", "/subscribers/confirm", "t="+forged); status != 404 {
			t.Errorf("a link that is not whole: %d", status)
		}
	}
	var clicks sync.WaitGroup
	for range 2 {
		clicks.Go(func() {
			if status, page := apptest.AsRecipient(t, a, "POST", "/subscribers/confirm", "t="+token); status != 200 ||
				!strings.Contains(page, "You are subscribed") {
				t.Errorf("the button: %d\n%s", status, page)
			}
		})
	}
	clicks.Wait()
	if status, _ := apptest.AsRecipient(t, a, "POST", "/subscribers/confirm", "t="+token); status != 200 {
		t.Errorf("again: %d", status)
	}
	if got := listCounts(t, client); got != (api.ListCounts{Subscribed: 1}) {
		t.Errorf("confirmed: %+v", got)
	}
	mails = relay.Wait(2)
	if apptest.Header(t, mails[1], "Subject") != "Welcome to Weekly news" || apptest.Header(t, mails[1],
		"List-Id") == "" {
		t.Errorf("the welcome:\n%s", mails[1].Data)
	}
	if _, err := api.DeleteList.Do(t.Context(), client, "weekly"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "the link of a list that is gone is not found", func() bool {
		status, _ := apptest.AsRecipient(t, a, "POST", "/subscribers/confirm", "t="+token)
		return status == 404
	})
	if n := relay.Count(); n != 2 {
		t.Errorf("%d mails, want 2", n)
	}
}

// TestFormsTellNothing: status and body are the same for new, subscribed, unsubscribed, bounced and caught
// addresses. The caught one is not stored.
func TestFormsTellNothing(t *testing.T) {
	t.Parallel()
	a, client, relay := startPublic(t, nil)
	_, err := api.AddSuppressions.Do(t.Context(), client,
		api.SuppressionRequest{Suppressions: []api.NewSuppression{
			{Email: "bounced@example.net", Reason: "hard_bounce"}, {Email: "left@example.net", Reason: "unsubscribe",
				SuppressionScope: api.SuppressionScope{Account: "default", List: "weekly"}}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.CreateSubscriber.Do(t.Context(), client, api.SubscriberRequest{Email: "known@example.net",
		Lists:   []api.SubscriptionRequest{{ListID: "weekly", State: "subscribed"}},
		Consent: &api.Consent{Source: "checkout"}})
	if err != nil {
		t.Fatal(err)
	}
	relay.Wait(1) // the welcome
	var first string
	for _, form := range []string{formOf("new@example.net"), formOf("known@example.net"),
		formOf("bounced@example.net"), formOf("left@example.net"), formOf("robot@example.net") + "&website=x"} {
		status, page := apptest.AsRecipient(t, a, "POST", "/subscribers", form)
		if first == "" {
			first = page
		}
		if status != 200 || page != first || !strings.Contains(page, "look again in ten minutes") {
			t.Errorf("%s: %d, and another page:\n%s", form, status, page)
		}
	}
	relay.Wait(3) // to new and left
	if got := listCounts(t, client); got != (api.ListCounts{Pending: 2, Subscribed: 1}) {
		t.Errorf("%+v", got)
	}
}

// TestMailsThatAskAreLimited: the fourth of a day to an address, and the eleventh form of a network in a
// minute.
func TestMailsThatAskAreLimited(t *testing.T) {
	t.Parallel()
	a, client, relay := startPublic(t, map[string]string{"newsletter.formPerMinute": "2"})
	apptest.AsRecipient(t, a, "POST", "/subscribers", formOf("ann@example.net"))
	for range 2 {
		sent, err := api.AskAgain.Do(t.Context(), client, api.SubscriberAccount{}, "ann@example.net", "weekly")
		if err != nil || !sent.Sent || sent.QueueID == "" {
			t.Fatalf("%+v, %v", sent, err)
		}
	}
	_, err := api.AskAgain.Do(t.Context(), client, api.SubscriberAccount{}, "ann@example.net", "weekly")
	if failure, ok := errors.AsType[*api.Failure](err); !ok || failure.Problem.Code != "TooManyConfirmations" {
		t.Errorf("the fourth: %v", err)
	}
	relay.Wait(3)
	apptest.Eventually(t, "a network is limited", func() bool { // a minute may have ended in the meantime
		resp, err := http.Post(a.URL()+"/subscribers", "application/json",
			strings.NewReader(`{"listId":"weekly","email":"ann@example.net"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // not read further
		var p api.Problem
		return resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "" &&
			json.NewDecoder(resp.Body).Decode(&p) == nil && p.Code == "TooManyForms"
	})
	if n := relay.Count(); n != 3 {
		t.Errorf("%d mails, want 3", n)
	}
}
