package api_test

import (
	"testing"

	"github.com/postroom/postroom/api"
)

// TestScheduledIsNotDelayed: mail that waits for its own time has met no trouble.
func TestScheduledIsNotDelayed(t *testing.T) {
	t.Parallel()
	for want, m := range map[string]api.OutboxMessage{
		"scheduled": {State: api.Delayed},
		"delayed":   {State: api.Delayed, AttemptsMade: 1},
		"waiting":   {State: api.Waiting},
	} {
		if got := m.Stands(); got != want {
			t.Errorf("%+v: %s, want %s", m, got, want)
		}
	}
	limited := api.OutboxMessage{State: api.Delayed, Reason: "the limit of the gateway"}
	if got := limited.Stands(); got != "delayed" {
		t.Errorf("for a limit: %s", got)
	}
}
