package suppression

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts checks and stopped recipients, and shows the number of entries. Without a registry it
// exports nothing.
type metrics struct {
	checks  prometheus.Counter
	stops   map[Reason]prometheus.Counter
	entries *prometheus.GaugeVec   // by reason and kind of scope; written by Run
	lists   *prometheus.CounterVec // entries of providers' lists, by result
}

// kinds are the kinds of scope. A label has only the kind, because there is an id for each account and list.
var kinds = [...]string{"instance", "account", "list"}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	checks := auto.NewCounter(prometheus.CounterOpts{
		Name: "postroom_suppression_checks_total", Help: "Recipients that were looked up one by one.",
	})
	stops := auto.NewCounterVec(prometheus.CounterOpts{
		Name: "postroom_suppression_stops_total", Help: "Recipients that were looked up and are suppressed.",
	}, []string{"reason"})
	m := &metrics{checks: checks, stops: map[Reason]prometheus.Counter{}}
	m.entries = auto.NewGaugeVec(prometheus.GaugeOpts{
		Name: "postroom_suppression_entries", Help: "Entries of the suppression list.",
	}, []string{"reason", "scope"})
	m.lists = auto.NewCounterVec(prometheus.CounterOpts{Name: "postroom_suppression_provider_entries_total",
		Help: "Entries read from the suppression lists of providers."}, []string{"result"})
	m.imported(0, 0, 0)
	m.stops[Erased] = stops.WithLabelValues(string(Erased))
	for _, r := range Reasons {
		m.stops[r] = stops.WithLabelValues(string(r))
		for _, kind := range kinds {
			m.entries.WithLabelValues(string(r), kind).Set(0)
		}
	}
	return m
}

// imported counts entries of a provider's list: new ones, known ones, and those that are no addresses.
func (m *metrics) imported(added, known, failed int) {
	for result, n := range map[string]int{"added": added, "known": known, "failed": failed} {
		m.lists.WithLabelValues(result).Add(float64(n))
	}
}

func (m *metrics) checked(found *Entry) {
	m.checks.Inc()
	if found != nil {
		m.stops[found.Reason].Inc()
	}
}

func (m *metrics) counted(counts []Count) {
	sums := map[[2]string]int64{}
	for _, c := range counts {
		sums[[2]string{string(c.Reason), c.kind()}] += c.Entries
	}
	for _, r := range Reasons {
		for _, kind := range kinds {
			m.entries.WithLabelValues(string(r), kind).Set(float64(sums[[2]string{string(r), kind}]))
		}
	}
}
