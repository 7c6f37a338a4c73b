package smtpd

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/telemetry"
)

// metrics count connections, logins and messages of one listener.
type metrics struct {
	open        prometheus.Gauge
	connections *prometheus.CounterVec
	logins      *prometheus.CounterVec // nil on a bounce listener
	messages    *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		open: auto.Gauge("postroom_smtpd_connections",
			"Connections of applications that submit messages over SMTP."),
		connections: auto.Counters("postroom_smtpd_connections_total",
			"Connections by result. Evicted connections made room for others.",
			"result", "served", "evicted", "refused"),
		logins: auto.Counters("postroom_smtpd_logins_total",
			"Logins over SMTP by result.", "result", "ok", "refused", "limited", "unavailable"),
		messages: auto.Counters("postroom_smtpd_messages_total",
			"Messages submitted over SMTP, by reply.",
			"result", "queued", "repeated", "refused", "deferred", "broken_off"),
	}
}

func newBounceMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		open: auto.Gauge("postroom_returns_connections", "Connections of servers that bring mail back."),
		connections: auto.Counters("postroom_returns_connections_total",
			"Connections of servers that return messages, by result. Evicted connections made room for others.",
			"result", "served", "evicted", "refused"),
		messages: auto.Counters("postroom_returns_messages_total",
			"Messages returned over SMTP and LMTP, by reply.",
			"result", "taken", "refused", "deferred", "broken_off"),
	}
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
