package limits

import (
	"strings"

	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts admitted and waiting messages. Without a registry they are not exported.
type metrics struct {
	takes, waits, pauses, fulls map[string]prometheus.Counter // by kind of scope
}

// kinds of scope. Names are no labels: there are as many as accounts.
var kinds = []string{"account", "gateway", "destination", "other"}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{}
	for _, c := range []struct {
		counters *map[string]prometheus.Counter
		name     string
		help     string
	}{
		{&m.takes, "postroom_limit_taken_total", "Times a scope let a message go."},
		{&m.waits, "postroom_limit_waits_total", "Times that a limit made a message wait."},
		{&m.pauses, "postroom_limit_pauses_total", "Pauses that relays asked for."},
		{&m.fulls, "postroom_limit_connections_full_total",
			"Connections not opened because there were as many as there may be."},
	} {
		vec := telemetry.MetricsOf(reg).CountersBy(c.name, c.help, "scope")
		*c.counters = map[string]prometheus.Counter{}
		for _, kind := range kinds {
			(*c.counters)[kind] = vec.WithLabelValues(kind)
		}
	}
	return m
}

func kindOf(scope string) string {
	kind, _, _ := strings.Cut(scope, ":")
	switch kind + ":" {
	case "account:", "gateway:":
		return kind
	case destinationKind:
		return "destination"
	}
	return "other"
}

func (m *metrics) taken(scopes []Scope) {
	for _, s := range scopes {
		m.takes[kindOf(s.Name)].Inc()
	}
}

func (m *metrics) waited(scope string)    { m.waits[kindOf(scope)].Inc() }
func (m *metrics) throttled(scope string) { m.pauses[kindOf(scope)].Inc() }
func (m *metrics) full(scope string)      { m.fulls[kindOf(scope)].Inc() }
