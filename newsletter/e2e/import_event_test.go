package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestImportFinishedIsTold: the end of an import reaches webhooks once, with the results of its lines. The
// end of a dry run does not.
func TestImportFinishedIsTold(t *testing.T) {
	t.Parallel()
	type told struct {
		EventID, Account string
		Data             api.SubscriberImport
	}
	var mu sync.Mutex
	got := map[string]told{}
	hooks := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e told
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
		mu.Lock()
		defer mu.Unlock()
		got[e.EventID] = e
	}))
	t.Cleanup(hooks.Close)
	client, _ := runCampaigns(t, testsmtp.Start(t, testsmtp.Options{}),
		map[string]string{"webhooks.allowPrivate": "true"})
	_, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL,
		Events: []string{"importFinished"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []api.SubscriberImportOptions{{ID: "tried", DryRun: true}, {ID: "first"}, {ID: "second"}} {
		_, err := api.ImportSubscribers.Do(t.Context(), client,
			strings.NewReader("email\nann@example.net\nnobody\n"), o)
		if err != nil {
			t.Fatal(err)
		}
	}
	apptest.Eventually(t, "both imports are told", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) >= 2
	})
	mu.Lock()
	defer mu.Unlock()
	seen := map[string]bool{}
	for _, e := range got {
		seen[e.Data.ID] = true
		if e.Account != "default" || e.Data.State != "done" || e.Data.Lines != 2 || e.Data.Bad != 1 ||
			len(e.Data.Errors) != 1 || e.Data.Errors[0].Line != 3 {
			t.Errorf("%+v", e)
		}
	}
	if len(got) != 2 || !seen["first"] || !seen["second"] {
		t.Errorf("%+v", got)
	}
}
