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
			"Open connections of applications to the SMTP inlet."),
		connections: auto.Counters("postroom_smtpd_connections_total",
			"Connections to the SMTP inlet by result: served, evicted (made room for others), refused (421: no room).",
			"result", "served", "evicted", "refused"),
		logins: auto.Counters("postroom_smtpd_logins_total",
			"SMTP logins by result: ok, refused (wrong token, scope, address or account), limited (too many), unavailable (Redis).", "result", "ok", "refused", "limited", "unavailable"),
		messages: auto.Counters("postroom_smtpd_messages_total",
			"Messages received over SMTP by result: queued, repeated (idempotency key), refused (5xx), deferred (4xx), broken_off (connection lost, or far too large).",
			"result", "queued", "repeated", "refused", "deferred", "broken_off"),
	}
}

func newBounceMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		open: auto.Gauge("postroom_returns_connections", "Open connections of servers that return mail."),
		connections: auto.Counters("postroom_returns_connections_total",
			"Connections of servers that return mail by result: served, evicted (made room for others), refused (421: no room).",
			"result", "served", "evicted", "refused"),
		messages: auto.Counters("postroom_returns_messages_total",
			"Returned emails for each recipient by result: taken, refused (5xx), deferred (451: Redis is unavailable), broken_off.",
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
