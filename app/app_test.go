package app_test

import (
	"slices"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestFirstMail is a first use: no Redis, no file, one relay. A message submitted over HTTP reaches the
// relay, and its webhook the receiver.
func TestFirstMail(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	hooks := apptest.Receive(t)
	a := apptest.Run(t, map[string]string{"smtp": relay.URL(), "from": "Shop <shop@example.com>",
		"webhooks.allowPrivate": "true"})

	ctx := t.Context()
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(ctx, client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	answer, err := api.Submit.Do(ctx, client, api.SubmitRequest{
		To: api.Addresses{{Name: "Jörg", Address: "joerg@example.net"}}, Subject: "Grüße", Text: "Hallo",
	})
	if err != nil {
		t.Fatal(err)
	}
	mails := relay.Wait(1)
	if got := mails[0].To; !slices.Equal(got, []string{"joerg@example.net"}) {
		t.Errorf("the relay got mail for %v", got)
	}
	sent := hooks.Wait(t, event.MessageSent)
	if sent.QueueID != answer.QueueID {
		t.Errorf("messageSent is about %q, want %q", sent.QueueID, answer.QueueID)
	}
}
