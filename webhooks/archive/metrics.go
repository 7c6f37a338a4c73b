package archive

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the archive's counters.
type metrics struct {
	written prometheus.Counter
	lost    prometheus.Counter
	refused prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, a *Archive) *metrics {
	auto := promauto.With(reg)
	m := &metrics{
		written: auto.NewCounter(prometheus.CounterOpts{Name: "postroom_archive_events_total",
			Help: "Events written to the archive, or to the disk on their way to it."}),
		lost: auto.NewCounter(prometheus.CounterOpts{Name: "postroom_archive_lost_bytes_total",
			Help: "Bytes of events dropped because too much waited for the archive."}),
		refused: auto.NewCounter(prometheus.CounterOpts{Name: "postroom_archive_refused_total",
			Help: "Files of events that the archive refused."}),
	}
	auto.NewGaugeFunc(
		prometheus.GaugeOpts{Name: "postroom_archive_waiting_bytes",
			Help: "Bytes of events on the disk of this process that wait for the archive."},
		func() float64 {
			_, total, err := a.spool()
			if err != nil {
				return 0
			}
			return float64(total)
		})
	return m
}
