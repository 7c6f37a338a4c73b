package smtpd

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/fault"
)

// metrics count what comes in over SMTP. Mail that comes back has no logins.
type metrics struct {
	open        prometheus.Gauge
	connections *prometheus.CounterVec
	logins      *prometheus.CounterVec
	messages    *prometheus.CounterVec
}

// The closed sets of label values.
var (
	connectionResults = []string{"served", "refused"}
	loginResults      = []string{"ok", "refused", "limited", "unavailable"}
	messageResults    = []string{"queued", "repeated", "refused", "deferred", "broken_off"}
	bounceResults     = []string{"taken", "refused", "deferred", "broken_off"}
)

func newMetrics(reg *prometheus.Registry) *metrics {
	m := &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "postroom_smtpd_connections", Help: "Connections of applications that hand in mail over SMTP.",
		}),
		connections: newCounter(reg, "postroom_smtpd_connections_total", "Connections by whether there was room for them.", "result", connectionResults),
		logins:      newCounter(reg, "postroom_smtpd_logins_total", "Logins over SMTP by what came of them.", "result", loginResults),
		messages:    newCounter(reg, "postroom_smtpd_messages_total", "Messages handed in over SMTP by how they were answered.", "result", messageResults),
	}
	reg.MustRegister(m.open)
	return m
}

// newBounceMetrics are those of a door for mail that comes back.
func newBounceMetrics(reg *prometheus.Registry) *metrics {
	m := &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "postroom_returns_connections", Help: "Connections of servers that bring mail back.",
		}),
		connections: newCounter(reg, "postroom_returns_connections_total", "Connections of servers that bring mail back, by whether there was room for them.", "result", connectionResults),
		messages:    newCounter(reg, "postroom_returns_messages_total", "Mails brought back over SMTP and LMTP, by how they were answered.", "result", bounceResults),
	}
	reg.MustRegister(m.open)
	return m
}

func newCounter(reg *prometheus.Registry, name, help, label string, values []string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	for _, v := range values {
		c.WithLabelValues(v)
	}
	reg.MustRegister(c)
	return c
}

// taken counts a message that was answered 250.
func (m *metrics) taken(repeated bool) {
	if repeated {
		m.messages.WithLabelValues("repeated").Inc()
		return
	}
	m.messages.WithLabelValues("queued").Inc()
}

// message counts a message that was not.
func (m *metrics) message(r reply) {
	if r.code < 500 {
		m.messages.WithLabelValues("deferred").Inc()
		return
	}
	m.messages.WithLabelValues("refused").Inc()
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
