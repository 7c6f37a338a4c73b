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
	t.Parallel()
	w := setup(t)
	ctx, c, p := t.Context(), w.client, w.parts
	waiting, sent := p.queued(t, "acme"), p.sent(t, "acme")

	answer, err := api.Submit.Do(ctx, c, api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}},
		Text: "Hi", IdempotencyKey: "k"})
	if err != nil || answer.QueueID == "" || answer.Idempotency.Status != "MISS" {
		t.Errorf("Submit = %+v, %v", answer, err)
	}
	m, err := api.GetMessage.Do(ctx, c, waiting)
	want, wantErr := p.Outbox.Reader.Get(ctx, waiting)
	if err := errors.Join(err, wantErr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("message changed on its way (-sent +received):\n%s", diff)
	}
	var all []string
	for m, err := range api.All(ctx, c, api.ListOutbox, api.OutboxQuery{State: api.Scheduled, Account: "acme"}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.QueueID)
	}
	if diff := cmp.Diff([]string{waiting}, all); diff != "" {
		t.Error(diff)
	}
	logged, err := api.GetLoggedMessage.Do(ctx, c, sent)
	wantLogged, wantErr := p.Outbox.Reader.Message(ctx, sent)
	if err := errors.Join(err, wantErr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantLogged, logged); diff != "" {
		t.Errorf("message of the log changed on its way (-sent +received):\n%s", diff)
	}
	events, err := api.ListMessageEvents.Do(ctx, c, sent)
	wantEvents, wantErr := p.Outbox.Reader.MessageEvents(ctx, sent)
	if err := errors.Join(err, wantErr); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Errorf("events changed on their way (-sent +received):\n%s", diff)
	}
	all = nil
	for m, err := range api.All(ctx, c, api.ListMessages, api.LogQuery{Status: api.StatusSent}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.QueueID)
	}
	if diff := cmp.Diff([]string{sent}, all); diff != "" {
		t.Error(diff)
	}
	raw, err := api.MessageContent.Do(ctx, c, waiting)
	if content, wantErr := p.Outbox.Reader.Content(ctx, waiting); err != nil || wantErr != nil ||
		!bytes.Equal(raw, content) {
		t.Errorf("Content = %q, %v", raw, err)
	}

	token, err := p.Access.Create(ctx, api.TokenRequest{Description: "d"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	p.account(t, "a@b+c")
	p.account(t, "old")
	paused := true
	endpoint, delivery := p.delivery(t)
	calls := map[string]func() error{
		"Cancel": func() error { _, err := api.CancelMessage.Do(ctx, c, p.queued(t, "acme")); return err },
		"CancelAll": func() error {
			_, err := api.CancelMessages.Do(ctx, c, api.OutboxQuery{Account: "acme", PageSize: 7})
			return err
		},
		"Retry": func() error { _, err := api.RetryMessage.Do(ctx, c, p.queued(t, "shop")); return err },
		"Patch": func() error {
			_, err := api.PatchMessage.Do(ctx, c, api.OutboxPatch{SendAt: new(time.Now())}, p.queued(t, "shop"))
			return err
		},
		"Queue": func() error { _, err := api.GetQueue.Do(ctx, c, "submit"); return err },
		"SetPaused": func() error {
			_, err := api.PutQueue.Do(ctx, c, api.QueuePatch{Paused: new(paused)}, "bulk")
			return err
		},
		"Stats": func() error {
			_, err := api.GetStats.Do(ctx, c, api.CounterQuery{Account: "acme", Lane: api.Bulk})
			return err
		},
		"Settings": func() error { _, err := api.GetSettings.Do(ctx, c); return err },
		"Update": func() error {
			_, err := api.UpdateSettings.Do(ctx, c, api.Settings{WebhooksEnabled: &paused})
			return err
		},
		"CreateAcc": func() error {
			_, err := api.CreateAccount.Do(ctx, c, api.Account{Account: "a", Email: "a@example.com",
				SMTP: &api.SMTPServer{Host: "h", Port: 25}})
			return err
		},
		"Accounts": func() error {
			_, err := api.ListAccounts.Do(ctx, c, api.PageQuery{Page: 1, PageSize: 50})
			return err
		},
		"Account": func() error { _, err := api.GetAccount.Do(ctx, c, "a@b+c"); return err },
		"UpdateAcc": func() error {
			_, err := api.UpdateAccount.Do(ctx, c, api.AccountPatch{},
				"a@b+c")
			return err
		},
		"DeleteAcc": func() error { _, err := api.DeleteAccount.Do(ctx, c, "old"); return err },
		"Verify": func() error {
			_, err := api.VerifyAccount.Do(ctx, c, api.VerifyRequest{SMTP: &api.SMTPServer{Host: "h", Port: 25}})
			return err
		},
		"CreateTok": func() error {
			_, err := api.CreateToken.Do(ctx, c, api.TokenRequest{Description: "d"})
			return err
		},
		"Tokens": func() error { _, err := api.ListTokens.Do(ctx, c, api.TokenQuery{}); return err },
		"Token":  func() error { _, err := api.GetToken.Do(ctx, c, token.ID); return err },
		"RotateTok": func() error {
			_, err := api.RotateToken.Do(ctx, c, api.TokenRotation{}, token.ID)
			return err
		},
		"DeleteTok": func() error { _, err := api.DeleteToken.Do(ctx, c, "i"); return err },
		"Health":    func() error { _, err := api.GetHealth.Do(ctx, c); return err },
		"Ready":     func() error { _, err := api.GetReady.Do(ctx, c); return err },
		"CreateEnd": func() error {
			_, err := api.CreateEndpoint.Do(ctx, c, api.EndpointRequest{URL: "https://x.example"})
			return err
		},
		"Endpoints": func() error {
			_, err := api.ListEndpoints.Do(ctx, c, api.PageQuery{PageSize: 5})
			return err
		},
		"Endpoint": func() error { _, err := api.GetEndpoint.Do(ctx, c, endpoint); return err },
		"WebhookRoutes": func() error {
			_, err := api.ListWebhookRoutes.Do(ctx, c, api.PageQuery{PageSize: 5})
			return err
		},
		"WebhookRoute": func() error { _, err := api.GetWebhookRoute.Do(ctx, c, endpoint); return err },
		"UpdateEnd": func() error {
			_, err := api.UpdateEndpoint.Do(ctx, c, api.EndpointRequest{URL: "https://x.example",
				Secret: endpointSecret}, p.endpoint(t))
			return err
		},
		"PatchEnd": func() error {
			_, err := api.PatchEndpoint.Do(ctx, c, api.EndpointPatch{Description: new("x")}, endpoint)
			return err
		},
		"RotateEnd": func() error {
			_, err := api.RotateEndpointSecret.Do(ctx, c, api.SecretRotation{}, endpoint)
			return err
		},
		"WakeEnd": func() error { _, err := api.WakeEndpoint.Do(ctx, c, endpoint); return err },
		"StatsEnd": func() error {
			_, err := api.GetEndpointStats.Do(ctx, c, api.EndpointStatsQuery{Hours: 48}, endpoint)
			return err
		},
		"DeleteEnd": func() error { _, err := api.DeleteEndpoint.Do(ctx, c, p.endpoint(t)); return err },
		"Test": func() error {
			_, err := api.TestEndpoint.Do(ctx, c, api.EndpointTest{Event: "messageBounce"}, endpoint)
			return err
		},
		"ReplayDead": func() error {
			_, err := api.ReplayDeadLetter.Do(ctx, c, api.Corrections{To: api.Emails{"a@example.net"}},
				p.dead(t, "shop"))
			return err
		},
		"Replay": func() error {
			_, err := api.ReplayEndpoint.Do(ctx, c, api.EndpointReplay{Since: time.Now()}, endpoint)
			return err
		},
		"Deliveries": func() error {
			_, err := api.ListDeliveries.Do(ctx, c, api.DeliveryQuery{Page: 0}, endpoint)
			return err
		},
		"Delivery":  func() error { _, err := api.GetDelivery.Do(ctx, c, endpoint, delivery); return err },
		"Redeliver": func() error { _, err := api.Redeliver.Do(ctx, c, endpoint, delivery); return err },
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientTellsFailures(t *testing.T) {
	t.Parallel()
	w := setup(t)
	_, err := api.GetStats.Do(t.Context(), w.as("wrong"), api.CounterQuery{})
	failure, ok := errors.AsType[*api.Failure](err)
	if !ok || failure.Problem.StatusCode != http.StatusUnauthorized || failure.Problem.Message != "Bad token" ||
		failure.Problem.RequestID == "" {
		t.Errorf("got %v", err)
	}

	w.parts.checks = []api.Check{{Name: "redis", Message: "away"}}
	ready, err := api.GetReady.Do(t.Context(), w.client)
	if err != nil || ready.Ready || len(ready.Checks) != 1 {
		t.Errorf("Ready = %+v, %v: not being ready is an answer", ready, err)
	}
}
