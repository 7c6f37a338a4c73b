package server

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestClientRoundTrip calls every method of the client once, against the server it is made for.
func TestClientRoundTrip(t *testing.T) {
	w := setup(t)
	w.parts.messages["q1"] = queued("q1", "acme")
	ctx, c := t.Context(), w.client

	answer, err := c.Submit(ctx, api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}}, Text: "Hi", IdempotencyKey: "k"})
	if err != nil || answer.QueueID != "q1" || answer.Idempotency.Status != "MISS" {
		t.Errorf("Submit = %+v, %v", answer, err)
	}
	m, err := c.Message(ctx, "q1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(queued("q1", "acme"), m); diff != "" {
		t.Errorf("message changed on its way (-sent +received):\n%s", diff)
	}
	var all []string
	for m, err := range c.AllOutbox(ctx, api.OutboxQuery{State: api.Delayed}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.QueueID)
	}
	if diff := cmp.Diff([]string{"q1"}, all); diff != "" {
		t.Error(diff)
	}
	logged, err := c.LoggedMessage(ctx, "q1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(loggedMessage("q1", "acme"), logged); diff != "" {
		t.Errorf("message of the log changed on its way (-sent +received):\n%s", diff)
	}
	events, err := c.MessageEvents(ctx, "q1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(messageEvents("q1"), events); diff != "" {
		t.Errorf("events changed on their way (-sent +received):\n%s", diff)
	}
	all = nil
	for m, err := range c.AllMessages(ctx, api.LogQuery{Status: api.StatusSent}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.QueueID)
	}
	if diff := cmp.Diff([]string{"q1"}, all); diff != "" {
		t.Error(diff)
	}
	raw, err := c.Content(ctx, "q1")
	if err != nil || !bytes.HasPrefix(raw, []byte("From: a@")) {
		t.Errorf("Content = %q, %v", raw, err)
	}

	paused := true
	calls := map[string]func() error{
		"Cancel":    func() error { _, err := c.Cancel(ctx, "q1"); return err },
		"CancelAll": func() error { _, err := c.CancelAll(ctx, api.OutboxQuery{Account: "acme", PageSize: 7}); return err },
		"Retry":     func() error { _, err := c.Retry(ctx, "q1"); return err },
		"Patch":     func() error { _, err := c.Patch(ctx, "q1", api.OutboxPatch{SendAt: new(time.Now())}); return err },
		"Queue":     func() error { _, err := c.Queue(ctx, "submit"); return err },
		"SetPaused": func() error { _, err := c.SetPaused(ctx, "bulk", paused); return err },
		"Stats":     func() error { _, err := c.Stats(ctx, api.CounterQuery{Account: "acme", Lane: api.Bulk}); return err },
		"Settings":  func() error { _, err := c.Settings(ctx); return err },
		"Update":    func() error { _, err := c.UpdateSettings(ctx, api.Settings{WebhooksEnabled: &paused}); return err },
		"CreateAcc": func() error {
			_, err := c.CreateAccount(ctx, api.Account{Account: "a", Email: "a@example.com"})
			return err
		},
		"Accounts":  func() error { _, err := c.Accounts(ctx, 1, 50); return err },
		"Account":   func() error { _, err := c.Account(ctx, "a@b+c"); return err },
		"UpdateAcc": func() error { _, err := c.UpdateAccount(ctx, "a", api.AccountPatch{}); return err },
		"DeleteAcc": func() error { _, err := c.DeleteAccount(ctx, "a"); return err },
		"Verify": func() error {
			_, err := c.VerifyAccount(ctx, api.VerifyRequest{SMTP: &api.SMTPServer{Host: "h", Port: 25}})
			return err
		},
		"CreateTok": func() error { _, err := c.CreateToken(ctx, api.TokenRequest{Description: "d"}); return err },
		"Tokens":    func() error { _, err := c.Tokens(ctx, 0, 0); return err },
		"Token":     func() error { _, err := c.Token(ctx, "i"); return err },
		"DeleteTok": func() error { _, err := c.DeleteToken(ctx, "i"); return err },
		"Health":    func() error { _, err := c.Health(ctx); return err },
		"Ready":     func() error { _, err := c.Ready(ctx); return err },
		"CreateEnd": func() error {
			_, err := c.CreateEndpoint(ctx, api.EndpointRequest{URL: "https://x.example"})
			return err
		},
		"Endpoints": func() error { _, err := c.Endpoints(ctx, 0, 5); return err },
		"Endpoint":  func() error { _, err := c.Endpoint(ctx, "e1"); return err },
		"UpdateEnd": func() error {
			_, err := c.UpdateEndpoint(ctx, "e1", api.EndpointRequest{URL: "https://x.example"})
			return err
		},
		"DeleteEnd": func() error { _, err := c.DeleteEndpoint(ctx, "e1"); return err },
		"Test":      func() error { _, err := c.TestEndpoint(ctx, "e1"); return err },
		"ReplayDead": func() error {
			_, err := c.Replay(ctx, "q1", api.Corrections{To: api.Emails{"a@example.net"}})
			return err
		},
		"Replay":     func() error { _, err := c.ReplayEndpoint(ctx, "e1", time.Now()); return err },
		"Deliveries": func() error { _, err := c.Deliveries(ctx, "e1", 0, 0); return err },
		"Delivery":   func() error { _, err := c.Delivery(ctx, "e1", "d1"); return err },
		"Redeliver":  func() error { _, err := c.Redeliver(ctx, "e1", "d1"); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientTellsFailures(t *testing.T) {
	w := setup(t)
	_, err := w.as("wrong").Stats(t.Context(), api.CounterQuery{})
	failure, ok := errors.AsType[*api.Failure](err)
	if !ok || failure.Problem.StatusCode != http.StatusUnauthorized || failure.Problem.Message != "Bad token" || failure.Problem.RequestID == "" {
		t.Errorf("got %v", err)
	}

	w.parts.checks = []api.Check{{Name: "redis", Message: "away"}}
	ready, err := w.client.Ready(t.Context())
	if err != nil || ready.Ready || len(ready.Checks) != 1 {
		t.Errorf("Ready = %+v, %v: not being ready is an answer", ready, err)
	}
}
