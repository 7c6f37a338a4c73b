package feedback

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/feedback/bounce"
)

// bounceMetrics count mail that came back.
type bounceMetrics struct {
	mails   *prometheus.CounterVec // by kind, result
	refused prometheus.Counter
}

// newBounceMetrics makes the metrics and registers them; a nil registry counts for nobody.
func newBounceMetrics(reg prometheus.Registerer) *bounceMetrics {
	m := &bounceMetrics{
		mails: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "postroom_feedback_returned_total", Help: "Mails that came back, by what they are and what was done with them.",
		}, []string{"kind", "result"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "postroom_feedback_return_paths_refused_total", Help: "Recipients refused at the door for mail that comes back: return paths that are forged, and addresses that are none.",
		}),
	}
	for _, kind := range []bounce.Kind{bounce.Bounced, bounce.Delayed, bounce.Delivered, bounce.Complained, bounce.AutoReply, bounce.Challenge, bounce.None} {
		for _, result := range []Result{Taken, Disproven, Forgotten, Ignored} {
			m.mails.WithLabelValues(string(kind), string(result))
		}
	}
	if reg != nil {
		reg.MustRegister(m.mails, m.refused)
	}
	return m
}

// read counts a mail.
func (m *bounceMetrics) read(kind bounce.Kind, result Result) {
	m.mails.WithLabelValues(string(kind), string(result)).Inc()
}
