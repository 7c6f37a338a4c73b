package alerts

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics exports the standing alerts. Without a registry nothing is exported.
type metrics struct {
	alert    *prometheus.GaugeVec
	gateways *prometheus.GaugeVec // by gateway, kind
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{alert: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: "postroom_alert",
		Help: "1 while the alert stands, else 0."}, []string{"alert"}),
		gateways: promauto.With(reg).NewGaugeVec(prometheus.GaugeOpts{Name: "postroom_gateway_rate",
			Help: "Share of the recipients mailed through a gateway within a day who bounced for good, or complained.",
		}, []string{"gateway", "kind"})}
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
