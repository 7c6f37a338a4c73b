package e2e_test

import (
	"os"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

func TestMain(m *testing.M) {
	apptest.Store = "none"
	os.Exit(apptest.Main(m))
}

// runCampaigns runs a Postroom whose campaigns go to a relay, and returns a client and its URL.
func runCampaigns(t *testing.T, relay *testsmtp.Server, more map[string]string) (*api.Client, string) {
	t.Helper()
	set := map[string]string{"smtp": relay.URL(), "from": "Shop <shop@example.com>",
		"serviceUrl": "https://mail.example.com", "tracking.opens": "true", "tracking.clicks": "true",
		"delivery.retry.base": "1s"}
	for k, v := range more {
		set[k] = v
	}
	a := apptest.Run(t, set)
	return api.NewClient(a.URL(), a.Token(), nil), a.URL()
}

func listCounts(t *testing.T, client *api.Client) api.ListCounts {
	t.Helper()
	info, err := api.GetList.Do(t.Context(), client, "weekly")
	if err != nil {
		t.Fatal(err)
	}
	return info.Counts
}
