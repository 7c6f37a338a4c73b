package smtpd

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/postroom/postroom/api/fault"
)

// metrics count connections, logins and messages of one listener.
type metrics struct {
	open        prometheus.Gauge
	connections *prometheus.CounterVec
	logins      *prometheus.CounterVec // nil on a bounce listener
	messages    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		open: newGauge(reg, "postroom_smtpd_connections",
			"Connections of applications that hand in mail over SMTP."),
		connections: newCounter(reg, "postroom_smtpd_connections_total",
			"Connections by what became of them: those evicted made room for others.", "served", "evicted",
			"refused"),
		logins: newCounter(reg, "postroom_smtpd_logins_total",
			"Logins over SMTP by what came of them.", "ok", "refused", "limited", "unavailable"),
		messages: newCounter(reg, "postroom_smtpd_messages_total",
			"Messages handed in over SMTP by how they were answered.", "queued", "repeated", "refused", "deferred",
			"broken_off"),
	}
}

func newBounceMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{
		open: newGauge(reg, "postroom_returns_connections", "Connections of servers that bring mail back."),
		connections: newCounter(reg, "postroom_returns_connections_total",
			"Connections of servers that bring mail back, by what became of them: those evicted made room for others.",
			"served", "evicted", "refused"),
		messages: newCounter(reg, "postroom_returns_messages_total",
			"Mails brought back over SMTP and LMTP, by how they were answered.", "taken", "refused", "deferred",
			"broken_off"),
	}
}

func newGauge(reg prometheus.Registerer, name, help string) prometheus.Gauge {
	return promauto.With(reg).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// newCounter makes a counter with the closed set of values that its label "result" can have.
func newCounter(reg prometheus.Registerer, name, help string, results ...string) *prometheus.CounterVec {
	c := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"result"})
	for _, r := range results {
		c.WithLabelValues(r)
	}
	return c
}

// answered counts a message by its reply: 250 as the result given.
func (m *metrics) answered(r reply, ok string) {
	switch {
	case r.code >= 500:
		ok = "refused"
	case r.code >= 400:
		ok = "deferred"
	}
	m.messages.WithLabelValues(ok).Inc()
}

func loginResult(err error) string {
	switch fault.KindOf(err) {
	case "":
		return "ok"
	case fault.Unauthorized, fault.Forbidden, fault.NotFound:
		return "refused"
	case fault.Limited:
		return "limited"
	}
	return "unavailable"
}
