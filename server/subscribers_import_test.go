package server

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// TestSubscriberImportsOverTheAPI imports a file, shows and stops its import, and exports the result.
func TestSubscriberImportsOverTheAPI(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	for _, id := range []string{"news", "offers"} {
		w.parts.list(t, "default", id)
	}
	o := api.SubscriberImportOptions{ID: "first", ListID: []string{"news", "offers"}, State: "subscribed",
		Consent: "I want news", Tag: "shop"}
	got, err := api.ImportSubscribers.Do(ctx, w.client,
		strings.NewReader("email;name;attributes.seats:number\nann@example.com;Ann;3\nbob;;\n"), o)
	if err != nil || got.State != "done" || got.Added != 1 || got.Bad != 1 || got.Errors[0].Line != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	ann, err := api.GetSubscriber.Do(ctx, w.client, api.SubscriberAccount{}, "ann@example.com")
	if err != nil || len(ann.Lists) != 2 || ann.Attributes["seats"] != 3.0 || ann.Tags[0] != "shop" {
		t.Errorf("%+v, %v", ann, err)
	}
	jsonl := api.SubscriberImportOptions{DryRun: true}
	if got, err := api.ImportSubscribersJSONL.Do(ctx, w.client, strings.NewReader(
		`{"email":"eve@example.com"}`), jsonl); err != nil || got.Added != 1 || !got.DryRun {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := api.ImportSubscribers.Do(ctx, w.client, strings.NewReader("x"),
		o); codeOf(err) != "ImportExists" &&
		!strings.Contains(err.Error(), "file") {
		t.Errorf("again: %v", err)
	}
	list, err := api.ListSubscriberImports.Do(ctx, w.client, api.SubscriberAccount{})
	if err != nil || len(list.Imports) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	shown, err := api.GetSubscriberImport.Do(ctx, w.client, api.SubscriberAccount{}, "first")
	if err != nil || shown.Added != 1 {
		t.Errorf("%+v, %v", shown, err)
	}
	for _, want := range []bool{true, false} {
		if gone, err := api.StopSubscriberImport.Do(ctx, w.client, api.SubscriberAccount{}, "first"); err != nil ||
			gone.Deleted != want {
			t.Errorf("%+v, %v", gone, err)
		}
	}
	if _, err := api.GetSubscriberImport.Do(ctx, w.client, api.SubscriberAccount{}, "first"); codeOf(
		err) != "ImportNotFound" {
		t.Errorf("a forgotten import: %v", err)
	}
	var file bytes.Buffer
	q := api.SubscriberExportQuery{Format: "jsonl"}
	q.ListID, q.State = "news", "subscribed"
	if err := api.ExportSubscribers.Do(ctx, w.client, q, &file); err != nil ||
		!strings.Contains(file.String(), `"email":"ann@example.com","name":"Ann","tags":["shop"],"attributes":{"seats":3}`) {
		t.Errorf("%s, %v", file.String(), err)
	}
	if got := w.do(t, http.MethodGet, "/v1/subscribers/export", adminToken,
		""); got.header.Get("Content-Disposition") !=
		`attachment; filename="subscribers.csv"` || !strings.HasPrefix(got.body, "id,email,name,") {
		t.Errorf("%+v", got)
	}
	if got := w.do(t, http.MethodPost, "/v1/subscribers/import?listId=nolist&state=left", adminToken,
		"email\n", "Content-Type", "text/csv"); got.status != http.StatusNotFound {
		t.Errorf("%+v", got)
	}
	if got := w.do(t, http.MethodPost, "/v1/subscribers/import", adminToken, "{}"); got.status !=
		http.StatusUnsupportedMediaType {
		t.Errorf("%+v", got)
	}
}
