package apptest

import (
	"log/slog"
	"maps"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/internal/testsmtp"
)

// Postroom is one that runs.
type Postroom struct {
	URL    string
	Token  string
	Client *api.Client      // with that token
	Relay  *testsmtp.Server // takes the mail of the default account
}

// Start runs a Postroom whose mail goes to its own relay, with further settings, until the test ends.
// Webhooks may go to this machine.
func Start(t testing.TB, settings map[string]string) *Postroom {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	set := map[string]string{
		"smtp":                  relay.URL(),
		"from":                  "Example Shop <shop@example.com>",
		"webhooks.allowPrivate": "true",
	}
	maps.Copy(set, settings)
	a := RunWith(t, set, app.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	return &Postroom{URL: a.URL(), Token: a.Token(), Client: api.NewClient(a.URL(), a.Token(), nil),
		Relay: relay}
}
