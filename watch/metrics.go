package watch

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics shows what stands. Without a registry it shows it to nobody.
type metrics struct{ alert *prometheus.GaugeVec }

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{alert: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "postroom_alert",
		Help: "1 while the alert stands, else 0."}, []string{"alert"})}
	m.show(nil, nil)
	if reg == nil {
		return m, nil
	}
	if err := reg.Register(m.alert); err != nil {
		return nil, fmt.Errorf("watch: metrics: %w", err)
	}
	return m, nil
}

// show sets the gauge of each alert: the alerts of several queues are one.
func (m *metrics) show(standing map[string]entry, local map[string]state) {
	up := map[string]bool{}
	for _, e := range standing {
		up[e.Alert] = true
	}
	for _, s := range local {
		up[s.Alert] = true
	}
	for _, name := range names {
		value := 0.0
		if up[name] {
			value = 1
		}
		m.alert.WithLabelValues(name).Set(value)
	}
}
