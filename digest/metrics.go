package digest

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/telemetry"
)

// metrics counts events and runs. Without a registry it exports nothing.
type metrics struct {
	events   *prometheus.CounterVec // by what became of them
	runs     *prometheus.CounterVec // by state
	rendered prometheus.Observer
	planned  prometheus.Gauge
	late     prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	auto := telemetry.MetricsOf(reg)
	return &metrics{
		events: auto.Counters("postroom_digest_events_total",
			"Accepted digest events, by result.",
			"state", waiting, atOnce, dropped, "refused"),
		runs: auto.Counters("postroom_digest_runs_total", "Runs of digests that ended, by result.",
			"state", api.DigestSent, api.DigestFailed, api.DigestSkipped),
		rendered: auto.HistogramsBy("postroom_digest_render_seconds", "Time to read and write the mail of a run.",
			prometheus.ExponentialBuckets(.0005, 4, 8)).WithLabelValues(),
		planned: auto.Gauge("postroom_digests_planned", "Schedules for which something waits."),
		late: auto.Gauge("postroom_digests_late_seconds",
			"Delay of the oldest digest that is due or in progress. 0 if there is none."),
	}
}

// added counts the answers to events.
func (m *metrics) added(results []api.DigestEventResult) {
	for _, r := range results {
		switch {
		case !r.Success:
			m.events.WithLabelValues("refused").Inc()
		case r.Idempotency == nil || r.Idempotency.Status == "MISS":
			m.events.WithLabelValues(r.State).Inc()
		}
	}
}

// measureEvery is the interval of looking how late digests are.
const measureEvery = 10 * time.Second

// measure keeps the gauges, until ctx ends.
func (w *worker) measure(ctx context.Context) {
	for {
		if state, err := w.State(ctx); err == nil {
			w.metrics.planned.Set(float64(state.Planned))
			w.metrics.late.Set(state.Late.Seconds())
		}
		if !redisdb.Pause(ctx, measureEvery) {
			return
		}
	}
}

// State is what waits and works.
type State struct {
	Planned int           // schedules for which something waits
	Open    int           // runs at work
	Late    time.Duration // of the oldest that is due; 0: none is
}

// State returns what waits and works.
func (b *base) State(ctx context.Context) (s State, _ error) {
	if any, err := b.DB.Looks().Any(ctx, shardKeys()...); err == nil && !any {
		return s, nil
	}
	pipe := b.DB.Client().Pipeline()
	var counts [2][shards]*redis.IntCmd
	var oldest [shards]*redis.ZSliceCmd
	for shard := range shards {
		counts[0][shard], counts[1][shard] = pipe.ZCard(ctx, dueKey(shard)), pipe.ZCard(ctx, openKey(shard))
		oldest[shard] = pipe.ZRangeWithScores(ctx, dueKey(shard), 0, 0)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return s, redisdb.Failed(err, "count digests")
	}
	now := b.opts.Now()
	for shard := range shards {
		s.Planned += int(counts[0][shard].Val())
		s.Open += int(counts[1][shard].Val())
		for _, z := range oldest[shard].Val() {
			s.Late = max(s.Late, now.Sub(time.UnixMilli(int64(z.Score))))
		}
	}
	s.Late = max(0, s.Late)
	return s, nil
}

// Count completes the state of the queue digests. It has no tasks: schedules wait, and runs are active.
func (b *base) Count(ctx context.Context, s *api.QueueStatus) error {
	state, err := b.State(ctx)
	s.Jobs.Active, s.Jobs.Waiting, s.Latency = state.Open, state.Planned, state.Late.Seconds()
	if s.Paused {
		s.Jobs.Waiting, s.Jobs.Paused = 0, state.Planned
	}
	return err
}
