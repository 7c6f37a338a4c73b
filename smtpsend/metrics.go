package smtpsend

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what was sent and how long it took. Without a registry it counts for nobody.
type metrics struct {
	open     prometheus.Gauge
	opened   prometheus.Counter
	phases   map[string]prometheus.Observer
	outcomes map[string]prometheus.Counter
}

// outcomes a recipient can have in one Send: delivered, in doubt, or a verdict.
var outcomes = []string{"delivered", "in_doubt", string(Hard), string(Soft), string(Throttle), string(Policy),
	string(Auth), string(Block)}

// phases that are timed.
var phases = []string{"wait", "connect", "tls", "auth", "mail", "rcpt", "data", "body", "dot"}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{phases: map[string]prometheus.Observer{}, outcomes: map[string]prometheus.Counter{}}
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
		m.phases[p] = seconds.WithLabelValues(p)
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
	for _, p := range []struct {
		name string
		took time.Duration
	}{
		{"wait", t.Wait}, {"connect", t.Connect}, {"tls", t.TLS}, {"auth", t.Auth}, {"mail", t.Mail},
		{"rcpt", t.Rcpt}, {"data", t.Data}, {"body", t.Body}, {"dot", t.Dot},
	} {
		if p.took > 0 {
			m.phases[p.name].Observe(p.took.Seconds())
		}
	}
	for _, rcpt := range r.Recipients {
		switch {
		case rcpt.Err == nil:
			m.outcomes["delivered"].Inc()
		case rcpt.Err.InDoubt:
			m.outcomes["in_doubt"].Inc()
		default:
			m.outcomes[string(rcpt.Err.Verdict)].Inc()
		}
	}
}
