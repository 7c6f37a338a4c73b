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
		entries: auto.Counters("postroom_audit_entries_total", "Entries written to the audit log: begun, and the result of the change, which is done, refused or failed.",
			"result", string(api.AuditBegun), string(api.AuditDone), string(api.AuditRefused),
			string(api.AuditFailed)),
		failed: auto.Counter("postroom_audit_failed_total",
			"Audit log entries that couldn't be written, so their changes were not made or have no result."),
	}
	auto.GaugeFunc("postroom_audit_intact",
		"1 unless this process found the audit log tampered with.",
		func() float64 {
			if ok, _ := l.Intact(); ok {
				return 1
			}
			return 0
		})
	auto.GaugeFunc("postroom_audit_head_seq",
		"Number of the newest audit log entry that this process knows; it never falls while the process runs.",
		func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(l.known.Seq)
		})
	return m
}
