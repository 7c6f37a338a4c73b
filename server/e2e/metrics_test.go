package e2e_test

import (
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestMetricsAreDocumented compares docs/metrics.md with the metrics of a Postroom that has delivered a
// message.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	relay, hooks := testsmtp.Start(t, testsmtp.Options{}), apptest.Receive(t)
	set := apptest.FeedbackSettings(t) // its events API is read
	maps.Copy(set, map[string]string{"smtp": relay.URL(), "from": "shop@example.com",
		"webhooks.allowPrivate": "true", "smtpd.listen": "127.0.0.1:0",
		"bounce.domain": "bounce.example.com", "bounce.listen": "127.0.0.1:0", "archive.dir": t.TempDir(),
		"traces.endpoint": gather(t).URL})
	a := apptest.Run(t, set)
	client := api.NewClient(a.URL(), a.Token(), nil)
	if _, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: hooks.URL}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{
		To: api.Addresses{{Address: "ann@example.net"}}, Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
	endpoint := testapi.Start(t, "http", testapi.Options{})
	if _, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: "own", Name: "own", Type: "http",
		API: &api.GatewayAPI{URL: endpoint.URL + "/mail", Secret: testapi.DefaultSecret}}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{Gateway: "own",
		To: api.Addresses{{Address: "bob@example.net"}}, Text: "Hello"}); err != nil {
		t.Fatal(err)
	}
	hooks.Wait(t, event.MessageSent)
	diff := ""
	defer func() {
		if diff != "" {
			t.Errorf("docs/metrics.md (-) and /metrics (+) differ:\n%s", diff)
		}
	}()
	apptest.Eventually(t, "what the webhook came of is counted", func() bool {
		diff = cmp.Diff(listedMetrics(t), scrape(t, a))
		return diff == ""
	})
}

// TestAlertsUseDocumentedMetrics finds alerts on metrics that don't exist. They would never fire.
func TestAlertsUseDocumentedMetrics(t *testing.T) {
	t.Parallel()
	rules, err := os.ReadFile("../../deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	listed := listedMetrics(t)
	for _, name := range regexp.MustCompile(`postroom_[a-z_]+`).FindAllString(string(rules), -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, ok := strings.CutSuffix(name, suffix); ok && strings.HasPrefix(listed[base], "histogram") {
				name = base
			}
		}
		if _, ok := listed[name]; !ok {
			t.Errorf("deploy/alerts.yml uses %s, which docs/metrics.md does not list", name)
		}
	}
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(page), "| "+alert[1]+" |") {
			t.Errorf("docs/monitoring.md does not list the alert %s", alert[1])
		}
	}
}

// listedMetrics reads the name, type and labels of each metric from the page.
func listedMetrics(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `(postroom_[a-z_]+)` \\| ([a-z]+) \\| ([a-z, ]*)\\|").FindAllStringSubmatch(string(page), -1) {
		out[row[1]] = described(row[2], strings.FieldsFunc(row[3], func(r rune) bool {
			return r == ' ' ||
				r == ','
		}))
	}
	if len(out) == 0 {
		t.Fatal("docs/metrics.md has no table of metrics")
	}
	return out
}

// metrics returns the answer of /metrics.
func metrics(t *testing.T, a *app.App) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token())
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET /metrics: %s, %v", answer.Status, err)
	}
	return string(text)
}

// scrape reads /metrics as listedMetrics reads the page, without the metrics of Go and the process.
func scrape(t *testing.T, a *app.App) map[string]string {
	t.Helper()
	text := metrics(t, a)
	label := regexp.MustCompile(`([a-z_]+)="`)
	kinds, labels := map[string]string{}, map[string][]string{}
	name := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			fields := strings.Fields(rest)
			name = fields[0]
			kinds[name] = fields[1]
			continue
		}
		if set, _, ok := strings.Cut(line, "} "); ok && !strings.HasPrefix(line, "#") {
			for _, l := range label.FindAllStringSubmatch(set, -1) {
				if l[1] != "le" && !slices.Contains(labels[name], l[1]) {
					labels[name] = append(labels[name], l[1])
				}
			}
		}
	}
	out := map[string]string{}
	for name, kind := range kinds {
		if !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			out[name] = described(kind, labels[name])
		}
	}
	return out
}

func described(kind string, labels []string) string {
	slices.Sort(labels)
	return strings.TrimSpace(kind + " " + strings.Join(labels, ","))
}
