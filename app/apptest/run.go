package apptest

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

// Run runs Postroom with settings, on a free port and with its own data directory, until the test ends.
func Run(t testing.TB, set map[string]string) *app.App {
	t.Helper()
	return RunLogging(t, set, Logger(t))
}

// RunLogging is Run with a given logger.
func RunLogging(t testing.TB, set map[string]string, logger *slog.Logger) *app.App {
	t.Helper()
	return RunWith(t, set, app.Options{Logger: logger})
}

// Store is the setting documents.store of a package's tests. TestMain sets it to none where no test searches,
// because an index takes more time than most of what tests do.
var Store = "embedded"

// RunWith is Run with options of its own.
func RunWith(t testing.TB, set map[string]string, o app.Options) *app.App {
	t.Helper()
	set["http.listen"], set["data"] = "127.0.0.1:0", t.TempDir()
	set["documents.store"] = cmp.Or(set["documents.store"], Store)
	loaded, err := config.Load(config.Sources{Flags: set})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(t.Context(), &loaded.Config, o)
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
				t.Errorf("run: %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Postroom did not stop within a minute")
		}
	})
	return a
}

// Logger returns a debug logger to the test's output, which is shown when the test fails.
func Logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
