package archive

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the archive's counters.
type metrics struct {
	written prometheus.Counter
	lost    prometheus.Counter
	refused prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, a *Archive) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{
		written: auto.Counter("postroom_archive_events_total",
			"Events written to the archive, or to the disk on their way to it."),
		lost: auto.Counter("postroom_archive_lost_bytes_total",
			"Bytes dropped because archive.maxSpool was exceeded. Alert if this isn't 0."),
		refused: auto.Counter("postroom_archive_refused_total", "Event files that the store refused; they are kept as refused-…."),
	}
	auto.GaugeFunc("postroom_archive_waiting_bytes",
		"Bytes on this process's disk waiting for archive.url.", func() float64 {
			_, total, err := a.spool()
			if err != nil {
				return 0
			}
			return float64(total)
		})
	return m
}
