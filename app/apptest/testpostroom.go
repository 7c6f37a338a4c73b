package apptest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/testsmtp"
)

// stopWithin is generous: the machine may be running every other test package at the same time.
const stopWithin = time.Minute

// Postroom is one that runs.
type Postroom struct {
	URL    string
	Token  string
	Client *api.Client      // with that token
	Relay  *testsmtp.Server // takes the mail of the default account
}

// Start runs a Postroom whose mail goes to a relay of its own, with further settings, until the test ends.
// Webhooks may go to this machine.
func Start(t testing.TB, settings map[string]string) *Postroom {
	t.Helper()
	relay := testsmtp.Start(t, testsmtp.Options{})
	set := map[string]string{
		"http.listen": "127.0.0.1:0", "data": t.TempDir(), "smtp": relay.URL(),
		"from":                  "Example Shop <shop@example.com>",
		"webhooks.allowPrivate": "true",
	}
	for key, value := range settings {
		set[key] = value
	}
	loaded, err := config.Load(config.Sources{Flags: set})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), &loaded.Config,
		app.Options{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("run Postroom: %v", err)
			}
		case <-time.After(stopWithin):
			t.Errorf("Postroom did not stop within %s", stopWithin)
		}
	})
	return &Postroom{URL: a.URL(), Token: a.Token(), Client: api.NewClient(a.URL(), a.Token(), nil),
		Relay: relay}
}
