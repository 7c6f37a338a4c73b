package smtpsend

import (
	"time"

	"github.com/postroom/postroom/internal/telemetry"
	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts outcomes and times. Without a registry they are not exported.
type metrics struct {
	open     prometheus.Gauge
	opened   prometheus.Counter
	phases   []prometheus.Observer // in the order of phases
	outcomes map[string]prometheus.Counter
}

// outcomes a recipient can have in one Send: delivered, in doubt, or a verdict.
var outcomes = []string{"delivered", "in_doubt", string(Hard), string(Soft), string(Throttle), string(Policy),
	string(Auth), string(Block)}

// phases that are timed, in the order of Timings.
var phases = []string{"wait", "connect", "tls", "auth", "mail", "rcpt", "data", "body", "dot"}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{
		open:     auto.Gauge("postroom_smtp_connections", "Connections to relays open now, idle ones included."),
		opened:   auto.Counter("postroom_smtp_connections_opened_total", "Connections to relays opened."),
		outcomes: map[string]prometheus.Counter{},
	}
	seconds := auto.HistogramsBy("postroom_smtp_phase_seconds",
		"Time spent in each phase of handing a message to a relay.",
		[]float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}, "phase")
	recipients := auto.CountersBy("postroom_smtp_recipients_total", "Recipients by result of one attempt.",
		"outcome")
	for _, p := range phases {
		m.phases = append(m.phases, seconds.WithLabelValues(p))
	}
	for _, o := range outcomes {
		m.outcomes[o] = recipients.WithLabelValues(o)
	}
	return m
}

// observe records one finished Send.
func (m *metrics) observe(r *Result) {
	t := &r.Timings
	for i, took := range []time.Duration{t.Wait, t.Connect, t.TLS, t.Auth, t.Mail, t.Rcpt, t.Data, t.Body,
		t.Dot} {
		if took > 0 {
			m.phases[i].Observe(took.Seconds())
		}
	}
	for _, rcpt := range r.Recipients {
		outcome := "delivered"
		if rcpt.Err != nil {
			outcome = string(rcpt.Err.Verdict)
			if rcpt.Err.InDoubt {
				outcome = "in_doubt"
			}
		}
		m.outcomes[outcome].Inc()
	}
}
