package audit

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/postroom/postroom/api"
)

// metrics are the log's counters.
type metrics struct {
	entries *prometheus.CounterVec
	failed  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, l *Log) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		entries: auto.NewCounterVec(prometheus.CounterOpts{Name: "postroom_audit_entries_total",
			Help: "Entries written to the audit log, by result."}, []string{"result"}),
		failed: auto.NewCounter(prometheus.CounterOpts{Name: "postroom_audit_failed_total",
			Help: "Entries that could not be written to the audit log. Their changes were not made, or have no result."}),
	}
	for _, r := range []api.AuditResult{api.AuditBegun, api.AuditDone, api.AuditRefused, api.AuditFailed} {
		m.entries.WithLabelValues(string(r))
	}
	auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "postroom_audit_intact",
		Help: "1 unless the last verification of the audit log by this process found it tampered with."},
		func() float64 {
			if ok, _ := l.Intact(); ok {
				return 1
			}
			return 0
		})
	auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "postroom_audit_head_seq",
		Help: "Number of the newest entry of the audit log that this process knows. It never falls."},
		func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(l.known.Seq)
		})
	return m
}
