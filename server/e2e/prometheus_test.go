package e2e_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPrometheusTakesTheRules lets promtool check deploy/alerts.yml, and run its tests.
func TestPrometheusTakesTheRules(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", "../../deploy/alerts.yml"},
		{"test", "rules", "../../deploy/alerts.test.yml"}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		out, err := exec.CommandContext(ctx, "promtool", args...).CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("promtool %q, which tools/test-programs.sh installs: %v\n%s", args, err, out)
		}
	}
}

// TestGrafanaDashboard finds metrics and labels of deploy/grafana/postroom.json that there are not: their
// panels would stay empty. TestMetricsAreDocumented compares docs/metrics.md with a real scrape.
func TestGrafanaDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/postroom.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Type, Title string
			Targets     []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	listed := listedMetrics(t)
	name := regexp.MustCompile(`postroom_[a-z_]+`)
	by := regexp.MustCompile(`by \(([a-z, ]+)\)`)
	for _, panel := range dashboard.Panels {
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, target := range panel.Targets {
			labels := []string{"le", "job", "instance"}
			for _, metric := range name.FindAllString(target.Expr, -1) {
				kind, ok := listed[metric]
				if base, bucket := strings.CutSuffix(metric, "_bucket"); bucket {
					kind = listed[base]
					ok = strings.HasPrefix(kind, "histogram")
				}
				if !ok {
					t.Errorf("panel %q: there is no metric %s", panel.Title, metric)
				}
				labels = append(labels, regexp.MustCompile(`[a-z]+`).FindAllString(kind, -1)...)
			}
			for _, found := range by.FindAllStringSubmatch(target.Expr, -1) {
				for label := range strings.SplitSeq(found[1], ", ") {
					if !slices.Contains(labels, label) {
						t.Errorf("panel %q: %s has no label %s", panel.Title, target.Expr, label)
					}
				}
			}
		}
	}
}
