package server

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
)

// TestRealParts walks through the routes that change something, with everything below in place.
func TestRealParts(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, c := t.Context(), w.client
	if _, err := api.CreateAccount.Do(ctx, c, api.Account{Account: "acme", Email: "sender@example.com",
		SMTP: &api.SMTPServer{Host: "relay.example", Port: 25}}); err != nil {
		t.Fatal(err)
	}
	token, err := api.CreateToken.Do(ctx, c, api.TokenRequest{Description: "acme's", Account: "acme",
		Scopes: []api.Scope{"send", "outbox"}})
	if err != nil {
		t.Fatal(err)
	}
	acme := w.as(token.Token)
	if _, err := api.PutQueue.Do(ctx, c, api.QueuePatch{Paused: new(true)}, "submit"); err != nil {
		t.Fatal(err)
	}
	answer, err := api.Submit.Do(ctx, acme, api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}},
		Subject: "Hello", Text: "Hi", Tags: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := api.GetMessage.Do(ctx, acme, answer.QueueID)
	if err != nil || m.Account != "acme" || m.State != api.Paused {
		t.Errorf("Message = %+v, %v", m, err)
	}
	page, err := api.ListOutbox.Do(ctx, acme, api.OutboxQuery{Tag: "x", Search: "hello", State: api.Paused})
	if err != nil || page.Total != 1 {
		t.Errorf("Outbox = %+v, %v", page, err)
	}
	if raw, err := api.MessageContent.Do(ctx, acme, answer.QueueID); err != nil || len(raw) == 0 {
		t.Errorf("Content: %d bytes, %v", len(raw), err)
	}
	if _, err := api.ListAccounts.Do(ctx, acme, api.PageQuery{Page: 0}); !refused(err, 403) {
		t.Errorf("a bound token lists accounts: %v", err)
	}
	endpoint, err := api.CreateEndpoint.Do(ctx, c, api.EndpointRequest{URL: "https://hooks.example/x"})
	if err != nil || endpoint.Secret == "" {
		t.Errorf("CreateEndpoint = %+v, %v", endpoint, err)
	}
	if list, err := api.ListEndpoints.Do(ctx, c, api.PageQuery{Page: 0}); err != nil ||
		len(list.Endpoints) != 1 || list.Endpoints[0].Secret == endpoint.Secret {
		t.Errorf("Endpoints = %+v, %v", list, err)
	}
	if stats, err := api.GetStats.Do(ctx, c, api.CounterQuery{}); err != nil || stats.Accounts != 2 ||
		stats.Queues["submit"].Paused != 1 {
		t.Errorf("Stats = %+v, %v", stats, err)
	}
	if stats, err := api.GetStats.Do(ctx, acme, api.CounterQuery{}); err != nil || stats.Counters.Pending != 1 ||
		stats.Counters.QueuedHour != 1 || len(stats.Queues) != 0 {
		t.Errorf("Stats of the account = %+v, %v", stats, err)
	}
	if stats, err := api.GetStats.Do(ctx, c, api.CounterQuery{Lane: api.Bulk}); err != nil ||
		stats.Counters != (api.Counters{}) {
		t.Errorf("Stats of the bulk lane = %+v, %v", stats, err)
	}
	seen, err := api.ListMessages.Do(ctx, acme, api.LogQuery{Status: api.StatusQueued, Tag: "x",
		Search: "hello"})
	if err != nil || len(seen.Messages) != 1 || seen.Messages[0].Account != "acme" {
		t.Errorf("Messages = %+v, %v", seen, err)
	}
	if _, err := api.ListMessages.Do(ctx, acme, api.LogQuery{Cursor: "nonsense"}); !refused(err, 400) {
		t.Errorf("a cursor of nonsense: %v", err)
	}
	other, err := api.Submit.Do(ctx, c, api.SubmitRequest{To: api.Addresses{{Address: "a@example.net"}},
		From: &api.Address{Address: "x@example.com"}, Account: "acme", Text: "Hi"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CancelMessage.Do(ctx, c, other.QueueID); err != nil {
		t.Fatal(err)
	}
	deleted, err := api.DeleteAccount.Do(ctx, c, "acme")
	if err != nil || deleted.Cancelled != 1 {
		t.Errorf("DeleteAccount = %+v, %v", deleted, err)
	}
	if _, err := api.DeleteAccount.Do(ctx, c, "acme"); !refused(err, 404) {
		t.Errorf("deleted twice: %v", err)
	}
	if _, err := api.GetMessage.Do(ctx, c, answer.QueueID); !refused(err, 404) {
		t.Errorf("a cancelled message: %v", err)
	}
	logged, err := api.GetLoggedMessage.Do(ctx, c, answer.QueueID)
	if err != nil || logged.Status != api.StatusCancelled || logged.Account != "acme" || logged.Ended == nil ||
		logged.NextAttempt.Time != nil {
		t.Errorf("a cancelled message in the log: %+v, %v", logged, err)
	}
	story, err := api.ListMessageEvents.Do(ctx, c, answer.QueueID)
	story.Events = slices.DeleteFunc(story.Events, func(e api.MessageEvent) bool {
		return e.Event == "messageWaited" // on a slow machine, since the queue is paused
	})
	if err != nil || len(story.Events) != 2 || story.Events[0].EventID != answer.QueueID ||
		story.Events[1].Event != "messageCancelled" {
		t.Errorf("its events: %+v, %v", story, err)
	}
	var all []string
	for m, err := range api.All(ctx, c, api.ListMessages, api.LogQuery{PageSize: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m.QueueID)
	}
	if diff := cmp.Diff([]string{other.QueueID, answer.QueueID}, all); diff != "" {
		t.Errorf("the log, newest first (-want +got):\n%s", diff)
	}
}

// TestDeletionThatBrokeOff: the account is gone already, its mail is not.
func TestDeletionThatBrokeOff(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.parts.queued(t, "acme")
	if err := w.parts.Accounts.Delete(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if deleted, err := api.DeleteAccount.Do(t.Context(), w.client, "acme"); err != nil ||
		deleted.Cancelled != 1 {
		t.Errorf("DeleteAccount = %+v, %v", deleted, err)
	}
}

// TestCountsOfAnAccountBeginWhenItIsCreated: an account made again under an id has no events of the former
// one, not even those that came after it was deleted.
func TestCountsOfAnAccountBeginWhenItIsCreated(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, box := t.Context(), w.parts.Outbox
	early, late := w.parts.queued(t, "acme"), w.parts.queued(t, "acme")
	cancel := func(id string) {
		t.Helper()
		_, err := api.CancelMessage.Do(ctx, w.client, id)
		if err := errors.Join(err, box.Counts.ForgetEvents(ctx, "nobody")); err != nil { // counts the others
			t.Fatal(err)
		}
	}
	events := func() map[string]int {
		t.Helper()
		accounts := []api.AccountInfo{{Account: api.Account{Account: "acme"}}}
		if err := box.Counts.CountEvents(ctx, accounts); err != nil {
			t.Fatal(err)
		}
		return accounts[0].Counters.Events
	}
	if cancel(early); events()["messageCancelled"] != 1 {
		t.Errorf("before: %v", events())
	}
	if err := w.parts.Accounts.Delete(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	cancel(late)
	account := api.Account{Account: "acme", Email: "a@example.com",
		SMTP: &api.SMTPServer{Host: "relay.example", Port: 25}}
	if _, err := api.CreateAccount.Do(ctx, w.client, account); err != nil || events() != nil {
		t.Errorf("made again: %v, %v", events(), err)
	}
	cancel(w.parts.queued(t, "acme"))
	if _, err := api.CreateAccount.Do(ctx, w.client, account); err != nil || events() == nil {
		t.Errorf("replaced: %v, %v", events(), err)
	}
	if _, err := api.DeleteAccount.Do(ctx, w.client, "acme"); err != nil || events() != nil {
		t.Errorf("deleted: %v, %v", events(), err)
	}
}

// TestRealMailMerge: each entry is answered in its place, and its errors are worded as in a single request. A
// bound token merges as its own account and as no other.
func TestRealMailMerge(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx := t.Context()
	if _, err := api.CreateAccount.Do(ctx, w.client, api.Account{Account: "acme", Email: "sender@example.com",
		SMTP: &api.SMTPServer{Host: "relay.example", Port: 25}}); err != nil {
		t.Fatal(err)
	}
	token, err := api.CreateToken.Do(ctx, w.client, api.TokenRequest{Description: "acme's", Account: "acme",
		Scopes: []api.Scope{"send"}})
	if err != nil {
		t.Fatal(err)
	}
	acme := w.as(token.Token)
	merge := api.SubmitRequest{Text: "Hello {{params.name}}", IdempotencyKey: "k",
		MailMerge: []api.MailMergeEntry{
			{To: api.Address{Address: "a@example.net"}, Params: json.RawMessage(`{"name":"A"}`)},
			{To: api.Address{Address: "nobody"}}, {To: api.Address{Address: "b@example.net"}},
		}}
	answer, err := api.Submit.Do(ctx, acme, merge)
	if err != nil || len(answer.MailMerge) != 3 || answer.Response != "" || answer.Idempotency == nil ||
		answer.Idempotency.Status != "MISS" {
		t.Fatalf("%+v, %v", answer, err)
	}
	want := []api.ProblemField{
		{Key: "to.address", Message: `"to.address" is not a valid email address: it has no @`}}
	if diff := cmp.Diff(want, answer.MailMerge[1].Fields); diff != "" || answer.MailMerge[1].StatusCode != 400 ||
		!answer.MailMerge[0].Success || !answer.MailMerge[2].Success {
		t.Errorf("%+v\n%s", answer.MailMerge, diff)
	}
	again, err := api.Submit.Do(ctx, acme, merge)
	if err != nil || again.Idempotency.Status != "HIT" ||
		again.MailMerge[2].QueueID != answer.MailMerge[2].QueueID {
		t.Errorf("%+v, %v", again, err)
	}
	careful, err := api.CreateToken.Do(ctx, w.client, api.TokenRequest{Description: "with keys only",
		Scopes: []api.Scope{"send"}, Restrictions: &api.Restrictions{IdempotencyRequired: true}})
	if err != nil {
		t.Fatal(err)
	}
	named := api.SubmitRequest{Account: "acme", Text: "x", To: api.Addresses{{Address: "a@example.net"}}}
	if _, err := api.Submit.Do(ctx, w.as(careful.Token), named); !refused(err, 400) {
		t.Errorf("a token that needs a key, without one: %v", err)
	}
	named.IdempotencyKey = "named"
	if _, err := api.Submit.Do(ctx, w.as(careful.Token), named); err != nil {
		t.Errorf("a token that needs a key: %v", err)
	}
	named.Account = ""
	same, err := api.Submit.Do(ctx, acme, named)
	queued := api.IdempotencyStatus{Key: "named", Status: "HIT", State: api.StatusQueued}
	if err != nil || *same.Idempotency != queued {
		t.Errorf("the same key, the account named by the token: %+v, %v", same.Idempotency, err)
	}
	merge.Account, merge.IdempotencyKey = "other", ""
	if _, err := api.Submit.Do(ctx, acme, merge); !refused(err, 403) {
		t.Errorf("a bound token merges as another account: %v", err)
	}
	if _, err := api.Submit.Do(ctx, w.client, api.SubmitRequest{Account: "acme", Template: "AAAB",
		To: api.Addresses{{Address: "a@example.net"}}}); !refused(err, 404) {
		t.Errorf("a template that there isn't: %v", err)
	}
}

// TestReplayOfRealDeadLetters refuses what can't be right, each with a specific text.
func TestReplayOfRealDeadLetters(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if _, err := api.CreateAccount.Do(t.Context(), w.client,
		api.Account{Account: "acme", Email: "sender@example.com", SMTP: &api.SMTPServer{Host: "relay.example",
			Port: 25}}); err != nil {
		t.Fatal(err)
	}
	answer, err := api.Submit.Do(t.Context(), w.client, api.SubmitRequest{Account: "acme", To: api.Addresses{
		{Address: "a@example.net"}}, Text: "Hi"})
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "nowhere"
	for name, tc := range map[string]struct {
		id   string
		c    api.Corrections
		code string
	}{
		"an unknown message": {"none", api.Corrections{}, "MessageNotFound"},
		"one that is waiting": {answer.QueueID, api.Corrections{To: api.Emails{"b@example.net"}},
			"MessageNotFailed"},
	} {
		_, err := api.ReplayDeadLetter.Do(t.Context(), w.client, tc.c, tc.id)
		if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
	}
	for name, c := range map[string]api.Corrections{"GatewayNotFound": {Gateway: &nowhere}, "AccountNotFound": {
		Account: nowhere}} {
		_, err := api.ReplayDeadLetters.Do(t.Context(), w.client, api.ReplayRequest{Account: "acme",
			Corrections: &c})
		if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != name {
			t.Errorf("a replay of none: %v, want %s", err, name)
		}
	}
}

func refused(err error, status int) bool {
	f, ok := errors.AsType[*api.Failure](err)
	return ok && f.Problem.StatusCode == status
}

// TestInjection: line breaks and NUL, which would let a sender write headers or SMTP of his own, are refused
// wherever they stand.
func TestInjection(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if _, err := api.CreateAccount.Do(t.Context(), w.client,
		api.Account{Account: "acme", Email: "sender@example.com", SMTP: &api.SMTPServer{Host: "relay.example",
			Port: 25}}); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{
		"to.address":         `"to":{"address":"a@example.net%s"}`,
		"to.address, begin":  `"to":{"address":"%sa@example.net"}`,
		"from.address":       `"from":{"address":"a@example.net%s"}`,
		"envelope.to":        `"envelope":{"from":"","to":["a@example.net%s"]}`,
		"envelope.from":      `"envelope":{"from":"a@example.net%s","to":["a@example.net"]}`,
		"header value":       `"headers":{"X-A":"1%sBcc: victim@example.net"}`,
		"header name":        `"headers":{"X-A%sBcc":"1"}`,
		"messageId":          `"messageId":"<1@example.com>%sX: y"`,
		"inReplyTo":          `"inReplyTo":"<1@example.com>%sX: y"`,
		"references":         `"references":["<1@example.com>%sX: y"]`,
		"attachment name":    `"attachments":[{"content":"aGk=","filename":"a%sX: y"}]`,
		"attachment type":    `"attachments":[{"content":"aGk=","contentType":"text/plain%sX: y"}]`,
		"content id":         `"attachments":[{"content":"aGk=","cid":"a%sX: y"}]`,
		"dsn id":             `"dsn":{"id":"a%sRSET"}`,
		"dsn recipient":      `"dsn":{"recipient":"a@example.net%sRSET"}`,
		"subject (folded)":   `"subject":"a%sBcc: victim@example.net"`,
		"display name":       `"to":{"name":"a%sBcc: victim@example.net","address":"a@example.net"}`,
		"from, display name": `"from":{"name":"a%sBcc: victim@example.net","address":"a@example.net"}`,
	}
	for place, field := range places {
		for _, evil := range []string{`\r\n`, `\n`, `\r`, `\u0000`} {
			body := `{"account":"acme","dryRun":true,` + strings.Replace(field, "%s", evil, 1)
			if !strings.Contains(field, `"to"`) || strings.Contains(field, "envelope") {
				body += `,"to":{"address":"b@example.net"}`
			}
			got := w.do(t, "POST", "/v1/submit", adminToken, body+`,"text":"x"}`)
			switch got.status {
			case 400:
				if len(got.problem.Fields) == 0 {
					t.Errorf("%s with %s: refused without a field: %s", place, evil, got.body)
				}
			case 200: // taken, then: without what makes it dangerous
				var answer api.SubmitAnswer
				if err := json.Unmarshal([]byte(got.body), &answer); err != nil {
					t.Fatal(err)
				}
				head, _, _ := strings.Cut(string(answer.Preview), "\r\n\r\n")
				for line := range strings.SplitSeq(head, "\r\n") {
					if strings.HasPrefix(line, "Bcc:") || strings.HasPrefix(line, "X:") ||
						strings.ContainsAny(line, "\r\n\x00") {
						t.Errorf("%s with %s makes the header %q", place, evil, line)
					}
				}
			default:
				t.Errorf("%s with %s: %d %s", place, evil, got.status, got.body)
			}
		}
	}
}

// TestSettingsByName: as EmailEngine does, a query returns the settings that it names.
func TestSettingsByName(t *testing.T) {
	t.Parallel()
	w := setup(t)
	if _, err := api.UpdateSettings.Do(t.Context(), w.client, api.Settings{QueueKeep: new(7),
		WebhooksEnabled: new(false)}); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"?queueKeep=true":                       `{"queueKeep":7}`,
		"?webhooksEnabled=true&queueKeep=false": `{"webhooksEnabled":false}`,
		"?logs=true&queueKeep=true":             `{"queueKeep":7,"ignored":["logs"]}`,
	} {
		if got := w.do(t, "GET", "/v1/settings"+query, adminToken, ""); got.body != want {
			t.Errorf("%s: %s", query, got.body)
		}
	}
	got := w.do(t, "GET", "/v1/settings?nosuch=true&queueKeep=true", adminToken, "")
	if got.status != 400 || len(got.problem.Fields) != 1 || got.problem.Fields[0].Key != "nosuch" {
		t.Errorf("an unknown setting: %d %s", got.status, got.body)
	}
	got = w.do(t, "POST", "/v1/settings", adminToken, `{"logs":{"all":true},"webhookEvents":["messageNew"]}`)
	if got.body != `{"updated":["webhookEvents"],"ignored":["logs"]}` {
		t.Errorf("settings of EmailEngine: %d %s", got.status, got.body)
	}
}
