package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// comment is an event about a post.
func comment(recipient, post string) api.DigestEvent {
	return api.DigestEvent{Recipient: recipient, Email: "reader@example.com", Category: "comment",
		EntityType: "post", EntityID: post, Title: "Post " + post,
		Actor: &api.DigestActor{ID: "ann", Name: "Ann"}}
}

// TestDigestsOverTheAPI goes once through all that can be done with digests.
func TestDigestsOverTheAPI(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	kind, err := api.CreateDigestKind.Do(ctx, w.client, api.DigestKind{Category: "comment",
		Title: map[string]string{"en": "Comments"}, Preference: &api.DigestPreference{Mode: "daily"}})
	if err != nil || kind.Account != "default" || kind.Version != 1 {
		t.Fatalf("%+v, %v", kind, err)
	}
	event := comment("u1", "1")
	event.IdempotencyKey = "k1"
	one, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{DigestEvent: event})
	must(err)
	if one.Events != nil || one.State != "waiting" || one.Due == nil || one.Idempotency.Status != "MISS" {
		t.Errorf("a single event: %+v", one.DigestEventResult)
	}
	again, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{DigestEvent: event})
	if err != nil || again.ID != one.ID || again.Idempotency.Status != "HIT" {
		t.Errorf("again: %+v, %v", again.DigestEventResult, err)
	}
	many, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{Events: []api.DigestEvent{
		comment("u1", "1"), comment("u1", "2")}})
	if err != nil || len(many.Events) != 2 || many.DigestEventResult != nil {
		t.Errorf("two events: %+v, %v", many, err)
	}
	waits, err := api.ListWaitingDigestEvents.Do(ctx, w.client, api.DigestAccount{}, "u1")
	if err != nil || waits.Counts["comment"] != 3 || len(waits.Events) != 3 {
		t.Errorf("what waits: %+v, %v", waits, err)
	}
	preview, err := api.PreviewDigest.Do(ctx, w.client, api.DigestAccount{}, "u1")
	if err != nil || preview.Due == nil || !strings.Contains(preview.Text, "Post 2") {
		t.Errorf("preview: %+v, %v", preview, err)
	}
	reader, err := api.PatchDigestRecipient.Do(ctx, w.client, api.DigestRecipientRequest{
		TZ: new("Europe/Zurich"),
		Preferences: map[string]*api.DigestPreference{"comment": {Mode: "weekly", Weekdays: []string{"fri"}},
			"like": {Mode: "off"}}}, "u1")
	if err != nil || reader.Preferences["comment"].Mode != "weekly" || reader.Waiting["comment"] != 3 {
		t.Errorf("changed: %+v, %v", reader, err)
	}
	reader, err = api.PatchDigestRecipient.Do(ctx, w.client, api.DigestRecipientRequest{
		Preferences: map[string]*api.DigestPreference{"comment": nil}}, "u1")
	if _, has := reader.Preferences["comment"]; err != nil || has || len(reader.Preferences) != 1 {
		t.Errorf("null removes: %+v, %v", reader, err)
	}
	_, err = api.PatchDigestRecipient.Do(ctx, w.client, api.DigestRecipientRequest{Version: new(1)}, "u1")
	if codeOf(err) != "DigestRecipientChanged" {
		t.Errorf("of an old version: %v", err)
	}
	deleted, err := api.DeleteDigestEvents.Do(ctx, w.client, api.DigestEventRemoval{
		Recipients: []string{"u1", "u2"}, Category: "comment", EntityType: "post", EntityID: "2"})
	if err != nil || deleted.Deleted != 1 {
		t.Errorf("removed: %+v, %v", deleted, err)
	}
	sent, err := api.SendDigest.Do(ctx, w.client, api.DigestAccount{}, "u1")
	must(err)
	run, err := api.GetDigestRun.Do(ctx, w.client, sent.Run)
	if err != nil || run.State != api.DigestPending || run.Events != 2 || len(run.Groups) != 1 {
		t.Errorf("run: %+v, %v", run, err)
	}
	if _, err := api.RetryDigestRun.Do(ctx, w.client, sent.Run); codeOf(err) != "RunState" {
		t.Errorf("retry of a run that did not fail: %v", err)
	}
	empty, err := api.SendDigest.Do(ctx, w.client, api.DigestAccount{}, "u1")
	if err != nil || empty.State != api.DigestSkipped || empty.Reason != "empty" {
		t.Errorf("send of nothing: %+v, %v", empty, err)
	}
	runs, err := api.ListDigestRuns.Do(ctx, w.client, api.DigestRunQuery{Recipient: "u1",
		State: api.DigestPending, After: time.Now().Add(-time.Hour), Before: time.Now().Add(time.Hour)})
	if err != nil || len(runs.Runs) != 1 || runs.Runs[0].Run != sent.Run {
		t.Errorf("runs: %+v, %v", runs, err)
	}
	times, err := api.ComputeDigestTimes.Do(ctx, w.client, api.DigestTimesRequest{Count: 2,
		Preference: api.DigestPreference{Mode: "daily", Hour: new(8)}, TZ: "Europe/Zurich"})
	if err != nil || len(times.Times) != 2 || !strings.HasSuffix(times.Times[0].Local, "T08:00:00") {
		t.Errorf("times: %+v, %v", times, err)
	}
	kinds, err := api.ListDigestKinds.Do(ctx, w.client, api.DigestKindQuery{})
	if err != nil || kinds.Total != 1 {
		t.Errorf("kinds: %+v, %v", kinds, err)
	}
	changed, err := api.UpdateDigestKind.Do(ctx, w.client, api.DigestKindPatch{
		Preference: new(*api.DigestPreference)}, "comment")
	if err != nil || changed.Preference != nil {
		t.Errorf("a kind without its preference: %+v, %v", changed, err)
	}
	gone, err := api.DeleteDigestKind.Do(ctx, w.client, api.DigestAccount{}, "comment")
	if err != nil || !gone.Deleted {
		t.Errorf("kind deleted: %+v, %v", gone, err)
	}
	gone, err = api.DeleteDigestRecipient.Do(ctx, w.client, api.DigestAccount{}, "u1")
	if err != nil || !gone.Deleted {
		t.Errorf("deleted: %+v, %v", gone, err)
	}
}

// TestAReaderWithoutAnAddress has a preview. To send to them is refused, and their event waits.
func TestAReaderWithoutAnAddress(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	event := comment("u1", "1")
	event.Email = ""
	_, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{DigestEvent: event})
	if err != nil {
		t.Fatal(err)
	}
	preview, err := api.PreviewDigest.Do(ctx, w.client, api.DigestAccount{}, "u1")
	if err != nil || !strings.Contains(preview.Text, "Post 1") {
		t.Errorf("preview: %+v, %v", preview, err)
	}
	if _, err := api.SendDigest.Do(ctx, w.client, api.DigestAccount{}, "u1"); codeOf(err) != "NoAddress" {
		t.Errorf("sent: %v", err)
	}
	waits, err := api.ListWaitingDigestEvents.Do(ctx, w.client, api.DigestAccount{}, "u1")
	if err != nil || len(waits.Events) != 1 {
		t.Errorf("what waits: %+v, %v", waits, err)
	}
}

// TestDigestNamesMayHaveAnyCharacter: ids of recipients and categories are the application's.
func TestDigestNamesMayHaveAnyCharacter(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	for _, name := range []string{"a/b", "a b+c", "50%", "%2F", "ü/✓", "?x=1#y", "..", "a@b.example", `"'<`} {
		stored, err := api.PutDigestRecipient.Do(ctx, w.client, api.DigestRecipientRequest{}, name)
		if err != nil || stored.Recipient != name {
			t.Errorf("recipient %q: %+v, %v", name, stored, err)
		}
		if got, err := api.PreviewDigest.Do(ctx, w.client, api.DigestAccount{}, name); err != nil ||
			got.Due != nil {
			t.Errorf("preview of %q: %+v, %v", name, got, err)
		}
		if _, err := api.CreateDigestKind.Do(ctx, w.client, api.DigestKind{Category: name}); err != nil {
			t.Errorf("category %q: %v", name, err)
		}
		if got, err := api.GetDigestKind.Do(ctx, w.client, api.DigestAccount{}, name); err != nil ||
			got.Category != name {
			t.Errorf("category %q: %+v, %v", name, got, err)
		}
	}
}

// TestOneBadEventOfABatch has a separate answer.
func TestOneBadEventOfABatch(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.http.Transport = w.http.Transport.(*checked).inner // the document knows no bad events
	good := marshal(t, comment("u1", "1"))
	bad := map[string]string{
		"category":   strings.Replace(good, `"comment"`, `"`+strings.Repeat("x", 65)+`"`, 1),
		"url":        strings.Replace(good, `{`, `{"url":"javascript:alert(1)",`, 1),
		"payload":    strings.Replace(good, `{`, `{"payload":[1],`, 1),
		"occurredAt": strings.Replace(good, `{`, `{"occurredAt":"soon",`, 1),
		"priority":   strings.Replace(good, `{`, `{"priority":"huge",`, 1),
		"colour":     strings.Replace(good, `{`, `{"colour":"red",`, 1),
		"entityId":   strings.Replace(good, `"entityId":"1"`, `"entityId":1`, 1),
		"events":     `7`,
	}
	for field, event := range bad {
		got := w.do(t, "POST", "/v1/digests/events", adminToken, `{"events":[`+good+`,`+event+`,`+good+`]}`)
		var answer api.DigestEventsAnswer
		if err := json.Unmarshal([]byte(got.body), &answer); err != nil || got.status != 200 ||
			len(answer.Events) != 3 {
			t.Fatalf("%s: %d %s", field, got.status, got.body)
		}
		row := answer.Events[1]
		if !answer.Events[0].Success || !answer.Events[2].Success || row.Success || row.StatusCode != 400 ||
			row.Error == "" || len(row.Fields) == 0 || row.Fields[0].Key != field {
			t.Errorf("%s: %s", field, got.body)
		}
	}
}

// TestWrongDigestRequests: each names its field.
func TestWrongDigestRequests(t *testing.T) {
	t.Parallel()
	w := setup(t)
	good := marshal(t, comment("u1", "1"))
	with := func(field string) string { return strings.Replace(good, `{`, `{`+field+`,`, 1) }
	at := func(d time.Duration) string {
		return with(`"occurredAt":"` + time.Now().Add(d).UTC().Format(time.RFC3339) + `"`)
	}
	preference := func(p string) string { return `{"preference":` + p + `}` }
	const events, times, reader = "POST /v1/digests/events", "POST /v1/digests/times",
		"PUT /v1/digests/recipients/u1"
	for _, c := range []struct{ name, route, body, field string }{
		{"1,001 events", events, `{"events":[` + strings.Repeat(good+`,`, 1000) + good + `]}`, "events"},
		{"no event", events, `{"events":[]}`, "events"},
		{"nothing", events, `{}`, "recipient"},
		{"one beside several", events, strings.Replace(good, `{`, `{"events":[`+good+`],`, 1), "events"},
		{"payload no object", events, with(`"payload":"x"`), "payload"},
		{"payload too large", events, with(`"payload":{"x":"` + strings.Repeat("x", 4096) + `"}`), "payload"},
		{"65 characters of category", events, strings.Replace(good, `"comment"`,
			`"`+strings.Repeat("ü", 65)+`"`, 1),
			"category"},
		{"in the future", events, at(2 * time.Hour), "occurredAt"},
		{"ten years ago", events, at(-10 * 365 * 24 * time.Hour), "occurredAt"},
		{"script as link", events, with(`"url":"javascript:alert(1)"`), "url"},
		{"script as link of the actor", events, strings.Replace(good, `"name":"Ann"`, `"url":"javascript:x"`, 1),
			"actor.url"},
		{"zone CEST", events, with(`"tz":"CEST"`), "tz"},
		{"zone of a number", reader, `{"tz":"+02:00"}`, "tz"},
		{"zone of the machine", reader, `{"tz":"Local"}`, "tz"},
		{"no address", reader, `{"email":"x"}`, "email"},
		{"unknown mode", reader, `{"preferences":{"comment":{"mode":"yearly"}}}`, "preferences.comment.mode"},
		{"category of 65 characters", reader, `{"preferences":{"` + strings.Repeat("x", 65) + `":{"mode":"off"}}}`,
			"preferences." + strings.Repeat("x", 65)},
		{"quiet all day", reader, `{"quiet":[{"from":"00:00","until":"00:00"}]}`, "quiet"},
		{"quiet at no time", reader, `{"quiet":[{"from":"25:00","until":"07:00"}]}`, "quiet[0].from"},
		{"cron that never comes", times, preference(`{"mode":"custom","cron":"0 0 30 2 *"}`), "preference.cron"},
		{"cron of each minute", times, preference(`{"mode":"custom","cron":"* * * * *"}`), "preference.cron"},
		{"cron of 31 April", times, preference(`{"mode":"custom","cron":"0 8 31 4 *"}`), "preference.cron"},
		{"no cron", times, preference(`{"mode":"custom"}`), "preference.cron"},
		{"hour 24", times, preference(`{"mode":"daily","hour":24}`), "preference.hour"},
		{"too far", times, `{"preference":{"mode":"daily"},"after":"2101-01-01T00:00:00Z"}`, "after"},
		{"too many", times, `{"preference":{"mode":"daily"},"count":101}`, "count"},
		{"no times", times, preference(`{"mode":"off"}`), "preference.mode"},
		{"required and off", "POST /v1/digests/kinds",
			`{"category":"bill","required":true,"preference":{"mode":"off"}}`, "preference.mode"},
		{"all categories", "POST /v1/digests/kinds", `{"category":"*"}`, "category"},
		{"unknown template", "POST /v1/digests/kinds", `{"category":"bill","template":"none"}`, "template"},
		{"removal of nothing", "DELETE /v1/digests/events?recipient=u1", "", "key"},
		{"removal of nobody", "DELETE /v1/digests/events?key=k", "", "recipient"},
		{"removal of 101", "DELETE /v1/digests/events?key=k" + strings.Repeat("&recipient=u", 101), "",
			"recipient"},
		{"two accounts", "PUT /v1/digests/recipients/u1?account=a", `{"account":"b"}`, "account"},
		{"unknown state", "GET /v1/digests/runs?state=lost", "", "state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			method, path, _ := strings.Cut(c.route, " ")
			got := w.do(t, method, path, adminToken, c.body)
			if got.status != http.StatusBadRequest || len(got.problem.Fields) == 0 ||
				!strings.HasPrefix(got.problem.Fields[0].Key, c.field) {
				t.Errorf("want a fault of %s: %d %s", c.field, got.status, got.body)
			}
		})
	}
}

// TestDigestEventsThatCantBeTaken: a key of another event, and a category too many.
func TestDigestEventsThatCantBeTaken(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	event := comment("u1", "1")
	event.IdempotencyKey = "k1"
	if _, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{
		DigestEvent: event}); err != nil {
		t.Fatal(err)
	}
	event.EntityID = "2"
	_, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{DigestEvent: event})
	if codeOf(err) != "IdempotencyKeyReused" || refusedWith(err) != http.StatusUnprocessableEntity {
		t.Errorf("a key again: %v", err)
	}
	many, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{Events: []api.DigestEvent{event,
		comment("u1", "3")}})
	if err != nil || many.Events[0].Code != "IdempotencyKeyReused" || many.Events[0].StatusCode != 422 ||
		!many.Events[1].Success {
		t.Errorf("in a batch: %+v, %v", many.Events, err)
	}
	var list []api.DigestEvent
	for i := range 33 {
		e := comment("u2", "1")
		e.Category = fmt.Sprintf("category-%02d", i)
		list = append(list, e)
	}
	many, err = api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{Events: list})
	if err != nil || !many.Events[31].Success || many.Events[32].Code != "TooManyCategories" ||
		many.Events[32].StatusCode != 422 {
		t.Errorf("33 categories: %+v, %v", many.Events[31:], err)
	}
}

// TestRecipientsOfOtherAccountsAreNotThere, and tokens that may send may submit events, and nothing else.
func TestRecipientsOfOtherAccountsAreNotThere(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	for _, account := range []string{"acme", "other"} {
		w.parts.account(t, account)
		w.parts.token(t, account+"-digests", api.TokenRequest{Account: account,
			Scopes: []api.Scope{api.ScopeDigests}})
	}
	w.parts.token(t, "acme-send", api.TokenRequest{Account: "acme", Scopes: []api.Scope{api.ScopeSend}})
	sender := w.as("acme-send")
	if _, err := api.TakeDigestEvents.Do(ctx, sender, api.DigestEventsRequest{
		DigestEvent: comment("u1", "1")}); err != nil {
		t.Errorf("events with the scope send: %v", err)
	}
	if _, err := api.GetDigestRecipient.Do(ctx, sender, api.DigestAccount{}, "u1"); refusedWith(err) != 403 {
		t.Errorf("a recipient with the scope send: %v", err)
	}
	if got, err := api.GetDigestRecipient.Do(ctx, w.as("acme-digests"), api.DigestAccount{}, "u1"); err != nil ||
		got.Account != "acme" {
		t.Errorf("its own: %+v, %v", got, err)
	}
	for _, account := range []string{"", "acme"} {
		_, err := api.GetDigestRecipient.Do(ctx, w.as("other-digests"), api.DigestAccount{Account: account}, "u1")
		if refusedWith(err) != http.StatusNotFound {
			t.Errorf("another account's, account %q: %v", account, err)
		}
	}
	entry := func() api.AuditEntry { return w.entries(t, api.AuditQuery{PageSize: 1, Result: api.AuditDone})[0] }
	if _, err := api.PutDigestRecipient.Do(ctx, w.as("acme-digests"), api.DigestRecipientRequest{
		Email: new("secret@example.com")}, "u1"); err != nil {
		t.Fatal(err)
	}
	if e := entry(); e.Object.ID != "u1" || e.Object.Account != "acme" ||
		strings.Contains(marshal(t, e), "secret@example.com") {
		t.Errorf("the entry of a recipient: %+v %+v", e, e.Object)
	}
}

// TestTheQueueOfDigests is paused and resumed like others, and counts waiting tasks.
func TestTheQueueOfDigests(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	if _, err := api.TakeDigestEvents.Do(ctx, w.client, api.DigestEventsRequest{
		DigestEvent: comment("u1", "1")}); err != nil {
		t.Fatal(err)
	}
	q, err := api.GetQueue.Do(ctx, w.client, "digests")
	if err != nil || q.Paused || q.Jobs != (api.Jobs{Waiting: 1}) {
		t.Errorf("%+v, %v", q, err)
	}
	for _, paused := range []bool{true, false} {
		if _, err := api.PutQueue.Do(ctx, w.client, api.QueuePatch{Paused: new(paused)}, "digests"); err != nil {
			t.Fatal(err)
		}
		q, err = api.GetQueue.Do(ctx, w.client, "digests")
		if err != nil || q.Paused != paused || q.Jobs.Waiting+q.Jobs.Paused != 1 || (q.Jobs.Paused == 1) != paused {
			t.Errorf("paused %v: %+v, %v", paused, q, err)
		}
	}
}

// refusedWith returns the status of a failure.
func refusedWith(err error) int {
	if f, ok := errors.AsType[*api.Failure](err); ok {
		return f.Problem.StatusCode
	}
	return 0
}
