package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
)

// TestWorkerTellsHowItIs queries the monitoring listener of a worker, which has no API, while Redis stops and
// returns.
func TestWorkerTellsHowItIs(t *testing.T) {
	t.Parallel()
	redis, relay := testredis.Server(t), apptest.SlowRelay(t, 0)
	w := apptest.SpawnAs(t, apptest.SettingsFor(t, redis.URL(), relay), "worker")
	if w.URL != "" || w.Monitor == "" {
		t.Fatalf("a worker serves an API at %q, health at %q", w.URL, w.Monitor)
	}
	apptest.Eventually(t, "the worker is ready", func() bool {
		status, body := apptest.Look(t, w.Monitor+"/ready", "")
		return status == http.StatusOK && strings.Contains(body, `"take tasks"`) &&
			!strings.Contains(body, `"outbox"`)
	})
	if status, body := apptest.Look(t, w.Monitor+"/metrics", apptest.TestToken); status != http.StatusOK ||
		!strings.Contains(body, "postroom_outbox_attempts_total") {
		t.Errorf("metrics: %d %s", status, body)
	}
	if status, _ := apptest.Look(t, w.Monitor+"/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("metrics without a token: %d", status)
	}
	redis.Kill()
	if status, body := apptest.Look(t, w.Monitor+"/ready", ""); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "Redis is unavailable") {
		t.Errorf("ready without Redis: %d %s", status, body)
	}
	if status, _ := apptest.Look(t, w.Monitor+"/health", ""); status != http.StatusOK {
		t.Errorf("health without Redis: %d", status)
	}
	redis.Restart(t)
	apptest.Eventually(t, "the worker is ready again",
		func() bool { status, _ := apptest.Look(t, w.Monitor+"/ready", ""); return status == http.StatusOK })
	w.Stop(t)
}

// TestMetricsMoveToTheMonitor: if there is an API, the monitoring listener serves the metrics instead of the
// API. Health stays on the API, where load balancers check it.
func TestMetricsMoveToTheMonitor(t *testing.T) {
	t.Parallel()
	set := apptest.SettingsFor(t, testredis.URL(t), apptest.SlowRelay(t, 0))
	set["monitor.listen"] = "127.0.0.1:0"
	p := apptest.SpawnAs(t, set, "all")
	for path, want := range map[string]int{
		p.URL + "/metrics": http.StatusNotFound, p.Monitor + "/metrics": http.StatusOK,
		p.URL + "/health":     http.StatusOK,
		p.Monitor + "/health": http.StatusOK, p.Monitor + "/v1/outbox": http.StatusNotFound,
	} {
		if status, body := apptest.Look(t, path, apptest.TestToken); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	if _, body := apptest.Look(t, p.Monitor+"/metrics", apptest.TestToken); !strings.Contains(body,
		"postroom_http_requests_in_flight") {
		t.Error("the metrics of the API are missing at the monitor")
	}
}
