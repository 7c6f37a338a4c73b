package app_test

import (
	"log/slog"
	"testing"
)

// testLogger returns a debug logger to the test's output, which is shown when the test fails.
func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
