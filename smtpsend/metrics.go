package smtpsend

import (
	"time"

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

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{outcomes: map[string]prometheus.Counter{}}
	m.open = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "postroom_smtp_connections", Help: "Connections to relays open now, idle ones included.",
	})
	m.opened = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "postroom_smtp_connections_opened_total", Help: "Connections to relays opened.",
	})
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "postroom_smtp_phase_seconds", Help: "Time spent in each phase of handing a message to a relay.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
	}, []string{"phase"})
	recipients := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "postroom_smtp_recipients_total", Help: "Recipients by what came of one attempt.",
	}, []string{"outcome"})
	for _, p := range phases {
		m.phases = append(m.phases, seconds.WithLabelValues(p))
	}
	for _, o := range outcomes {
		m.outcomes[o] = recipients.WithLabelValues(o)
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.open, m.opened, seconds, recipients} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
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
