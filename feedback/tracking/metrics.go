package tracking

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/outbox"
)

// The outcomes of a hit.
const (
	human    = "human"    // passed on
	bot      = "machine"  // passed on, marked as a bot's
	repeated = "repeated" // the visitor was there within the same second
	ignored  = "ignored"  // HEAD, and prefetches of browsers
	expired  = "expired"  // the message is older than Options.Expiry
	forged   = "forged"   // the token is not valid
	preview  = "preview"  // the token is of an email that was not sent
	blocked  = "blocked"  // Options.Blocked has the target or the message
)

// metrics counts hits. With a nil registry nothing is counted.
type metrics struct {
	hits    *prometheus.CounterVec
	dropped prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, waiting func() int) *metrics {
	auto := telemetry.MetricsOf(reg)
	m := &metrics{
		hits: auto.CountersBy("postroom_tracking_hits_total", "Opens and clicks by outcome: human, machine, repeated (same visitor within a second), ignored (HEAD or prefetch), expired (tracking.expiry), forged (invalid token), preview, blocked (blockedLinks).", "kind", "outcome"),
		dropped: auto.Counter("postroom_tracking_dropped_total",
			"Opens and clicks lost because too many were waiting for Redis, or because the process stopped first."),
	}
	auto.GaugeFunc("postroom_tracking_waiting", "Opens and clicks waiting in memory, normally those of two seconds.",
		func() float64 { return float64(waiting()) })
	for _, k := range []kind{opened, clicked} {
		for _, outcome := range []string{human, bot, repeated, ignored, expired, forged, preview,
			blocked} {
			m.hits.WithLabelValues(string(k), outcome)
		}
	}
	return m
}

func (m *metrics) count(k kind, outcome string) { m.hits.WithLabelValues(string(k), outcome).Inc() }

// handedOver counts a hit that the inbox took.
func (m *metrics) handedOver(f outbox.Fact) {
	k, outcome := opened, human
	if f.Type == event.TrackClick {
		k = clicked
	}
	if f.Details.Bot {
		outcome = bot
	}
	m.count(k, outcome)
}
