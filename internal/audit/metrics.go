package audit

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/telemetry"
)

// metrics are the log's counters.
type metrics struct {
	entries *prometheus.CounterVec
	failed  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, l *Log) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{
		entries: auto.Counters("postroom_audit_entries_total", "Entries written to the audit log, by result.",
			"result", string(api.AuditBegun), string(api.AuditDone), string(api.AuditRefused),
			string(api.AuditFailed)),
		failed: auto.Counter("postroom_audit_failed_total",
			"Entries that could not be written to the audit log. Their changes were not made, or have no result."),
	}
	auto.GaugeFunc("postroom_audit_intact",
		"1 unless the last verification of the audit log by this process found it tampered with.",
		func() float64 {
			if ok, _ := l.Intact(); ok {
				return 1
			}
			return 0
		})
	auto.GaugeFunc("postroom_audit_head_seq",
		"Number of the newest entry of the audit log that this process knows. It never falls.",
		func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(l.known.Seq)
		})
	return m
}
