package app_test

import (
	"log/slog"
	"testing"
)

// testLogger writes what an operator would read into the test's output, which shows when the test fails.
func testLogger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}
