package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
)

// monitor runs a monitoring server on a registry that a server of an API counts in, too.
func monitor(t *testing.T, p *parts) (url string, stop func()) {
	t.Helper()
	registry := prometheus.NewRegistry()
	newMetrics(registry, registry)
	s, err := NewMonitor(p.Access, p, Options{Listen: "127.0.0.1:0", Metrics: registry})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	t.Cleanup(stop)
	return s.URL(), stop
}

func ask(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestMonitorAnswersHealthAndMetricsOnly(t *testing.T) {
	t.Parallel()
	p := newParts(t)
	url, _ := monitor(t, p)
	for name, row := range map[string]struct {
		path, token string
		status      int
		says        string
	}{
		"health needs no token":         {"/health", "", 200, `"success":true`},
		"ready needs no token":          {"/ready", "", 200, `"ready":true`},
		"metrics need one":              {"/metrics", "", 401, "Missing authentication"},
		"metrics":                       {"/metrics", adminToken, 200, "postroom_http_requests_in_flight 0"},
		"metrics, of a bound token":     {"/metrics", boundToken, 403, "Unauthorized account"},
		"profiles need a token":         {"/debug/pprof/heap", "", 401, "Missing authentication"},
		"a list of profiles":            {"/debug/pprof/", adminToken, 200, "goroutine"},
		"a profile":                     {"/debug/pprof/goroutine?debug=1", adminToken, 200, "goroutine profile:"},
		"profiles, of a bound token":    {"/debug/pprof/heap", boundToken, 403, "Unauthorized account"},
		"no command line":               {"/debug/pprof/cmdline", adminToken, 404, "There is no profile"},
		"nothing of the API":            {"/v1/outbox", adminToken, 404, "Not Found"},
		"nothing of its documentation":  {"/openapi.json", "", 404, "Not Found"},
		"nothing of the operator pages": {"/", adminToken, 404, "Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := ask(t, url+row.path, p.secret(row.token))
			if status != row.status || !strings.Contains(body, row.says) {
				t.Errorf("%d %s, want %d and %q", status, body, row.status, row.says)
			}
		})
	}
}

func TestMonitorTellsWhenWorkCantBeDone(t *testing.T) {
	t.Parallel()
	p := newParts(t)
	p.checks = []api.Check{{Name: "redis", Message: "Redis does not answer"}}
	url, stop := monitor(t, p)
	if status, body := ask(t, url+"/ready", ""); status != http.StatusServiceUnavailable ||
		!strings.Contains(body, "Redis does not answer") {
		t.Errorf("%d %s", status, body)
	}
	if status, _ := ask(t, url+"/health", ""); status != http.StatusOK {
		t.Errorf("health answers %d: Redis being away is no reason to restart", status)
	}
	stop()
	if _, err := http.Get(url + "/health"); err == nil { //nolint:noctx // refused at once
		t.Error("it answers after its end")
	}
}

func TestMetricsApartFromTheAPI(t *testing.T) {
	t.Parallel()
	w := setup(t, func(o *Options) { o.MetricsApart = true })
	r := w.do(t, http.MethodGet, "/metrics", adminToken, "")
	if r.status != http.StatusNotFound || !strings.Contains(r.problem.Message, "monitor.listen") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := w.do(t, http.MethodGet, "/ready", "", ""); r.status != http.StatusOK {
		t.Errorf("ready: %d", r.status)
	}
}

func TestNewMonitorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	if _, err := NewMonitor(nil, newParts(t), Options{}); err == nil {
		t.Error("made without access")
	}
	p := newParts(t)
	url, _ := monitor(t, p)
	_, err := NewMonitor(p.Access, p, Options{Listen: strings.TrimPrefix(url, "http://")})
	if err == nil || !strings.Contains(err.Error(), "monitor.listen") {
		t.Errorf("a port in use: %v", err)
	}
}
