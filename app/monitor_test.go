package app_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/testredis"
)

// TestWorkerTellsHowItIs queries the monitoring listener of a worker, which has no API, while Redis stops and
// returns.
func TestWorkerTellsHowItIs(t *testing.T) {
	t.Parallel()
	redis, relay := testredis.Server(t), slowRelay(t, 0)
	w := spawnAs(t, settingsFor(t, redis.URL(), relay), "worker")
	if w.url != "" || w.monitor == "" {
		t.Fatalf("a worker serves an API at %q, health at %q", w.url, w.monitor)
	}
	eventually(t, "the worker is ready", func() bool {
		status, body := look(t, w.monitor+"/ready", "")
		return status == http.StatusOK && strings.Contains(body, `"take tasks"`) &&
			!strings.Contains(body, `"outbox"`)
	})
	if status, body := look(t, w.monitor+"/metrics", testToken); status != http.StatusOK ||
		!strings.Contains(body, "postroom_outbox_attempts_total") {
		t.Errorf("metrics: %d %s", status, body)
	}
	if status, _ := look(t, w.monitor+"/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("metrics without a token: %d", status)
	}
	redis.Kill()
	if status, body := look(t, w.monitor+"/ready", ""); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "Redis does not answer") {
		t.Errorf("ready without Redis: %d %s", status, body)
	}
	if status, _ := look(t, w.monitor+"/health", ""); status != http.StatusOK {
		t.Errorf("health without Redis: %d", status)
	}
	redis.Restart(t)
	eventually(t, "the worker is ready again",
		func() bool { status, _ := look(t, w.monitor+"/ready", ""); return status == http.StatusOK })
	w.stop(t)
}

// TestMetricsMoveToTheMonitor: beside an API, the monitoring listener serves the metrics instead of the API.
// Health stays on the API, where load balancers check it.
func TestMetricsMoveToTheMonitor(t *testing.T) {
	t.Parallel()
	set := settingsFor(t, testredis.URL(t), slowRelay(t, 0))
	set["monitor.listen"] = "127.0.0.1:0"
	p := spawnAs(t, set, "all")
	for path, want := range map[string]int{
		p.url + "/metrics": http.StatusNotFound, p.monitor + "/metrics": http.StatusOK,
		p.url + "/health":     http.StatusOK,
		p.monitor + "/health": http.StatusOK, p.monitor + "/v1/outbox": http.StatusNotFound,
	} {
		if status, body := look(t, path, testToken); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	if _, body := look(t, p.monitor+"/metrics", testToken); !strings.Contains(body,
		"postroom_http_requests_in_flight") {
		t.Error("the metrics of the API are missing at the monitor")
	}
}

// look gets a page.
func look(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}
