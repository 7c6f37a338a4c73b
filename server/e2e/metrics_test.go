package e2e_test

import (
	"flag"
	"fmt"
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

var update = flag.Bool("update", false, "write the tables of docs/metrics.md")

// TestMetricsAreDocumented compares the tables of docs/metrics.md with the metrics of a Postroom that has
// delivered a message.
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
	page, diff := readPage(t), ""
	defer func() {
		if diff != "" {
			t.Errorf("docs/metrics.md (-) and /metrics (+) differ; run this test with -update:\n%s", diff)
		}
	}()
	listed := len(listedMetrics(t))
	apptest.Eventually(t, "all metrics exist", func() bool {
		scraped := scrape(t, a)
		want := tables(t, page, scraped)
		if *update {
			if err := os.WriteFile(metricsPage, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
			return len(scraped) >= listed // some appear late
		}
		diff = cmp.Diff(strings.Split(page, "\n"), strings.Split(want, "\n"))
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

const metricsPage = "../../docs/metrics.md"

func readPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// tableOfMetrics is a table of the page, below a comment that says how the names of its metrics begin.
var tableOfMetrics = regexp.MustCompile(`(?m)^<!-- metrics: (.+) -->\n\n(?:\|.*\n)*`)

// tables returns the page with the tables that a scrape makes. A metric is in the table that names the most
// of its beginning.
func tables(t *testing.T, page string, scraped map[string]metric) string {
	t.Helper()
	var all []string
	for _, table := range tableOfMetrics.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.Fields(table[1])...)
	}
	homes := map[string]string{}
	for name := range scraped {
		for _, beginning := range all {
			if strings.HasPrefix(name, "postroom_"+beginning) && len(beginning) > len(homes[name]) {
				homes[name] = beginning
			}
		}
		if homes[name] == "" {
			t.Errorf("no comment in docs/metrics.md is for %s", name)
		}
	}
	return tableOfMetrics.ReplaceAllStringFunc(page, func(table string) string {
		comment, _, _ := strings.Cut(table, "\n")
		rows := []string{comment, "", "| metric | type | labels | meaning |", "| --- | --- | --- | --- |"}
		for _, name := range slices.Sorted(maps.Keys(scraped)) {
			if m := scraped[name]; slices.Contains(strings.Fields(comment), homes[name]) {
				rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |", name, m.kind,
					strings.Join(m.labels, ", "), m.help))
			}
		}
		return strings.Join(rows, "\n") + "\n"
	})
}

// listedMetrics reads the type and labels of each metric from the page.
func listedMetrics(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range regexp.MustCompile(
		"(?m)^\\| `(postroom_[a-z_]+)` \\| ([a-z]+ \\| [a-z, ]*)\\|").FindAllStringSubmatch(readPage(t), -1) {
		out[row[1]] = row[2]
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

// metric is what a scrape says about a metric.
type metric struct {
	kind, help string
	labels     []string // sorted
}

// scrape reads /metrics, without the metrics of Go and the process.
func scrape(t *testing.T, a *app.App) map[string]metric {
	t.Helper()
	label := regexp.MustCompile(`([a-z_]+)="`)
	out := map[string]metric{}
	var name string
	for line := range strings.Lines(metrics(t, a)) {
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			var help string
			name, help, _ = strings.Cut(strings.TrimSpace(rest), " ")
			out[name] = metric{help: help}
			continue
		}
		m := out[name]
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			m.kind = strings.Fields(rest)[1]
		} else if set, _, ok := strings.Cut(line, "} "); ok {
			for _, l := range label.FindAllStringSubmatch(set, -1) {
				if l[1] != "le" && !slices.Contains(m.labels, l[1]) {
					m.labels = append(m.labels, l[1])
				}
			}
			slices.Sort(m.labels)
		}
		out[name] = m
	}
	maps.DeleteFunc(out, func(name string, _ metric) bool {
		return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_")
	})
	return out
}
