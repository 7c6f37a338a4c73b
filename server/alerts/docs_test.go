package alerts

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestEachAlertIsDocumented holds the pages to the code: what each alert is about, its rule for Prometheus,
// and what to do.
func TestEachAlertIsDocumented(t *testing.T) {
	t.Parallel()
	metricsPage, playbooks, rules, contract := read(t, "../../docs/monitoring.md"), read(t,
		"../../docs/playbooks.md"), read(t, "../../deploy/alerts.yml"), read(t, "../../api/alerts.go")
	for _, name := range names {
		row := regexp.MustCompile("(?m)^\\| `" + name +
			"` \\| .+ \\| (\\w+) \\| \\[.+\\]\\(playbooks.md#.+\\) \\|$").FindStringSubmatch(metricsPage)
		switch {
		case row == nil:
			t.Errorf("docs/monitoring.md has no row for the alert %s", name)
		case !strings.Contains(rules, "alert: "+row[1]+"\n"):
			t.Errorf("deploy/alerts.yml has no rule %s for the alert %s", row[1], name)
		}
		if !strings.Contains(playbooks, "`"+name+"`") {
			t.Errorf("docs/playbooks.md does not say what to do about the alert %s", name)
		}
		if !strings.Contains(contract, name) {
			t.Errorf("api.Alert does not name the alert %s", name)
		}
	}
	for _, found := range regexp.MustCompile(`postroom_alert\{alert="(\w+)"\}`).FindAllStringSubmatch(rules,
		-1) {
		if !strings.Contains(strings.Join(names, " "), found[1]) {
			t.Errorf("deploy/alerts.yml has a rule about the alert %s, which is never raised", found[1])
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
