package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestOneClickStopsTheMail follows a mail client's unsubscribe button. The mail has the fields of RFC 8058.
// Links that are merely followed change nothing. The button stops queued mail and later submits. It appears
// once on the timeline and in webhooks. The receipt is still sent.
func TestOneClickStopsTheMail(t *testing.T) {
	t.Parallel()
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	a := apptest.Run(t, map[string]string{
		"smtp": relay.URL(), "from": "Shop <shop@example.com>", "serviceUrl": "https://mail.example.com",
		"webhooks.allowPrivate": "true",
	})
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	first, err := api.Submit.Do(t.Context(), client, apptest.News(nil))
	if err != nil {
		t.Fatal(err)
	}
	mails := relay.Wait(1)
	link := strings.Trim(apptest.Header(t, mails[0], "List-Unsubscribe"), "<>")
	if apptest.Header(t, mails[0], "List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" ||
		!strings.HasPrefix(link, "https://mail.example.com/unsubscribe?t=") ||
		apptest.Header(t, mails[0], "List-Id") != "<news.example.com>" {
		t.Fatalf("headers: %s", mails[0].Data)
	}
	later := time.Now().Add(time.Hour)
	queued, err := api.Submit.Do(t.Context(), client, apptest.News(&later))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // a scanner
		for _, path := range []string{link, strings.Replace(link, "/unsubscribe", "/preferences", 1)} {
			if status, _ := apptest.AsRecipient(t, a, "GET", path, ""); status != 200 {
				t.Fatalf("GET %s: %d", path, status)
			}
		}
	}
	if answer, err := api.Submit.Do(t.Context(), client, apptest.News(nil)); err != nil || answer.QueueID == "" {
		t.Fatalf("a scanner unsubscribed Ann: %+v, %v", answer, err)
	}
	relay.Wait(2)

	for range 2 {
		if status, body := apptest.AsRecipient(t, a, "POST", link, "List-Unsubscribe=One-Click"); status != 200 ||
			body != "Unsubscribed\n" {
			t.Fatalf("one click: %d %s", status, body)
		}
	}
	if _, err := api.RetryMessage.Do(t.Context(), client, queued.QueueID); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "what was queued is stopped", func() bool {
		m, err := api.GetLoggedMessage.Do(t.Context(), client, queued.QueueID)
		return err == nil && m.Status == api.StatusSuppressed
	})
	if answer, err := api.Submit.Do(t.Context(), client, apptest.News(nil)); err != nil || !answer.NoneQueued() {
		t.Errorf("another mail of the list is queued: %+v, %v", answer, err)
	}
	if _, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Subject: "Receipt", Text: "Thank you"}); err != nil {
		t.Fatal(err)
	}
	if mails = relay.Wait(3); apptest.Header(t, mails[2], "Subject") != "Receipt" {
		t.Errorf("what came third: %s", mails[2].Data)
	}

	hooks.Wait(t, event.ListUnsubscribe)
	apptest.Eventually(t, "it is on the timeline",
		func() bool { return told(t, client, first.QueueID, event.ListUnsubscribe) == 1 })
	if n := relay.Count(); n != 3 {
		t.Errorf("%d mails went out, want 3", n)
	}
	status, page := apptest.AsRecipient(t, a, "POST", "/preferences",
		strings.Replace(link, "https://mail.example.com/unsubscribe?", "", 1)+"&action=resubscribe&from=list")
	if status != 200 || !strings.Contains(page, "Saved.") {
		t.Errorf("coming back: %d\n%s", status, page)
	}
	if answer, err := api.Submit.Do(t.Context(), client, apptest.News(nil)); err != nil || answer.QueueID == "" {
		t.Errorf("after coming back: %+v, %v", answer, err)
	}
	hooks.Wait(t, event.ListSubscribe)
	if n := told(t, client, first.QueueID, event.ListUnsubscribe); n != 1 {
		t.Errorf("unsubscribing is told %d times", n)
	}
}

// told counts the events of a kind on the timeline of a message.
func told(t *testing.T, client *api.Client, id string, kind event.Type) (n int) {
	t.Helper()
	all, err := api.ListMessageEvents.Do(t.Context(), client, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Events {
		if e.Event == string(kind) {
			n++
		}
	}
	return n
}
