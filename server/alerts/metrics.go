package alerts

import (
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics exports the standing alerts. Without a registry nothing is exported.
type metrics struct {
	alert    *prometheus.GaugeVec
	gateways *prometheus.GaugeVec // by gateway, kind
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{alert: auto.GaugesBy("postroom_alert", "1 while the alert stands, else 0.", "alert"),
		gateways: auto.GaugesBy("postroom_gateway_rate",
			"Share of a gateway's recipients in a day that bounced hard or complained.",
			"gateway", "kind")}
	m.show(nil, nil)
	m.forget()
	return m
}

// forget removes the rates of all gateways.
func (m *metrics) forget() {
	m.gateways.Reset()
	for _, kind := range []string{"bounce", "complaint"} {
		m.gateways.WithLabelValues("", kind)
	}
}

// show sets the gauge of each alert: the alerts of several queues are one.
func (m *metrics) show(standing map[string]entry, local map[string]state) {
	up := map[string]bool{}
	for _, e := range standing {
		up[e.Alert.Alert] = true
	}
	for _, s := range local {
		up[s.Alert.Alert] = true
	}
	for _, name := range names {
		value := 0.0
		if up[name] {
			value = 1
		}
		m.alert.WithLabelValues(name).Set(value)
	}
}
