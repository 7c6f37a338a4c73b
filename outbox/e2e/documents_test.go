package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

func submitText(t *testing.T, client *api.Client, to, text string) api.SubmitAnswer {
	t.Helper()
	answer, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: to}}, Subject: "Your invoice", HTML: "<p>Dear <b>customer</b>, " + text +
			"</p>", Tags: []string{"invoice"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestAnyMailIsFound: mail is found by its text, while it waits and after it was sent. With indexing paused,
// mail is still sent.
func TestAnyMailIsFound(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"smtp": relay.URL(), "from": "shop@example.com"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: new(true)}, "submit"); err != nil {
		t.Fatal(err)
	}
	answer := submitText(t, client, "ann@example.net", "the parcel is wonderful")
	apptest.Finds(t, client, `status:queued "parcel is wonderful" to:example.net tag:invoice`, 1)
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: new(false)}, "submit"); err != nil {
		t.Fatal(err)
	}
	relay.Wait(1)
	apptest.Finds(t, client, "status:sent wonderful", 1)
	page, err := api.SearchDocuments.Do(t.Context(), client, api.DocumentQuery{Q: "wonderful"})
	if err != nil || page.Documents[0].QueueID != answer.QueueID || page.Documents[0].Ended == nil ||
		page.Facets.Status[0] != (api.FacetCount{Value: "sent", Count: 1}) {
		t.Errorf("%+v, %v", page, err)
	}

	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: new(true)},
		"documents"); err != nil {
		t.Fatal(err)
	}
	submitText(t, client, "bob@example.net", "the second parcel is wonderful")
	relay.Wait(2)
	apptest.Eventually(t, "a job waits", func() bool {
		s, err := api.GetDocuments.Do(t.Context(), client)
		return err == nil && s.Waiting > 0 && s.Paused
	})
	if n := apptest.Found(t.Context(), client, "wonderful"); n != 1 {
		t.Errorf("%d are found while indexing is paused, want 1", n)
	}
	if _, err := api.PutQueue.Do(t.Context(), client, api.QueuePatch{Paused: new(false)},
		"documents"); err != nil {
		t.Fatal(err)
	}
	apptest.Finds(t, client, "status:sent wonderful", 2)

	b, err := api.RebuildDocuments.Do(t.Context(), client)
	if err != nil || b.Status != "wanted" && b.Status != "running" {
		t.Fatalf("%+v, %v", b, err)
	}
	apptest.Eventually(t, "the index is rebuilt", func() bool {
		s, err := api.GetDocuments.Do(t.Context(), client)
		return err == nil && s.Rebuild != nil && s.Rebuild.Status == "done"
	})
	apptest.Finds(t, client, "status:sent wonderful", 2)
	if _, err := api.SearchDocuments.Do(t.Context(), client, api.DocumentQuery{Q: "wonder:ful"}); err == nil {
		t.Error("a query with an unknown field was answered")
	}
}

// TestMailIsFoundAfterAKill: a process is killed while it indexes, and another after its index was deleted.
func TestMailIsFoundAfterAKill(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	set := apptest.SettingsFor(t, testredis.Server(t).URL(), relay)
	first := apptest.Spawn(t, set)
	const mails = 40
	for i := range mails {
		submitText(t, first.Client, fmt.Sprintf("user%d@example.net", i), fmt.Sprintf("parcel number%d", i))
	}
	first.Kill()
	second := apptest.Spawn(t, set)
	apptest.Finds(t, second.Client, "parcel", mails)
	apptest.Finds(t, second.Client, "status:sent number7", 1)
	second.Stop(t)
	if err := os.RemoveAll(filepath.Join(set["data"], "documents")); err != nil {
		t.Fatal(err)
	}
	third := apptest.Spawn(t, set)
	apptest.Finds(t, third.Client, "status:sent subject:invoice",
		mails) // texts of ended messages are nowhere else
}

// TestSearchInARoleOfItsOwn: the process that serves the API has the index, and indexes what another process
// delivers.
func TestSearchInARoleOfItsOwn(t *testing.T) {
	t.Parallel()
	relay, url := testsmtp.Start(t, testsmtp.Options{}), testredis.Server(t).URL()
	set := func(role string) map[string]string {
		s := apptest.SettingsFor(t, url, relay)
		s["role"] = role
		return s
	}
	mine, second := set("api"), set("api")
	door := apptest.Spawn(t, mine)
	apptest.Spawn(t, set("worker"))
	submitText(t, door.Client, "ann@example.net", "a parcel")
	apptest.Finds(t, door.Client, "status:sent parcel", 1)
	other := apptest.Spawn(t, second)
	if _, err := api.SearchDocuments.Do(t.Context(), other.Client, api.DocumentQuery{}); apptest.FailureCode(
		err) != "SearchElsewhere" {
		t.Errorf("another process with another data directory: %v", err)
	}
	apptest.Eventually(t, "another process tells how the index is doing", func() bool {
		s, err := api.GetDocuments.Do(t.Context(), other.Client)
		return err == nil && s.Documents == 1 && s.Indexer != ""
	})
	heir := apptest.Spawn(t, mine) // a replacement process that starts before the old one has ended
	if _, err := api.SearchDocuments.Do(t.Context(), heir.Client, api.DocumentQuery{}); apptest.FailureCode(
		err) != "SearchElsewhere" {
		t.Errorf("another process with the same data directory: %v", err)
	}
	door.Kill()
	apptest.Finds(t, heir.Client, "status:sent parcel", 1)
}

func TestWithoutASearchIndex(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	a := apptest.Run(t, map[string]string{"smtp": relay.URL(), "from": "shop@example.com",
		"documents.store": "none"})
	client := api.NewClient(a.URL(), a.Token(), nil)
	submitText(t, client, "ann@example.net", "a parcel")
	relay.Wait(1)
	if _, err := api.SearchDocuments.Do(t.Context(), client, api.DocumentQuery{}); apptest.FailureCode(
		err) != "SearchOff" {
		t.Errorf("search: %v", err)
	}
	if s, err := api.GetDocuments.Do(t.Context(), client); err != nil || s.Store != "none" {
		t.Errorf("state: %+v, %v", s, err)
	}
}
