package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Registerer is where metrics are registered.
type Registerer = prometheus.Registerer

// verdicts are the values of the label verdict.
var verdicts = append(outcomes[:], "panic")

// metrics are the metrics of one Server's handlers. A nil one records nothing.
type metrics struct {
	duration *prometheus.HistogramVec
	types    map[string]Handler
}

// newMetrics registers the metrics of the handlers.
func newMetrics(reg Registerer, handlers map[string]Handler) (*metrics, error) {
	m := &metrics{types: handlers, duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "postroom_task_duration_seconds",
		Help:    "How long handlers took for a task, by task type and verdict.",
		Buckets: []float64{.001, .005, .01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
	}, []string{"type", "verdict"})}
	for taskType := range handlers {
		for _, verdict := range verdicts {
			m.duration.WithLabelValues(taskType, verdict)
		}
	}
	if err := reg.Register(m.duration); err != nil {
		return nil, fmt.Errorf("register the metrics of queue workers: %w", err)
	}
	return m, nil
}

// observe counts one run of a handler. Types without a handler count as "unknown", because they come from
// outside.
func (m *metrics) observe(taskType, verdict string, took time.Duration) {
	if m == nil {
		return
	}
	if _, known := m.types[taskType]; !known {
		taskType = "unknown"
	}
	m.duration.WithLabelValues(taskType, verdict).Observe(took.Seconds())
}

// collectTimeout limits how long a scrape waits for Redis.
const collectTimeout = 2 * time.Second

// collector reports the state of queues when metrics are scraped.
type collector struct {
	control *Control
	queues  []string

	tasks, latency, processed, failed, paused, memory *prometheus.Desc
}

// NewCollector returns a collector of the sizes, latency, totals, pause and memory of the queues. Each
// scrape queries Redis once, for at most 2 s. While Redis is unavailable the scrape lacks these values.
func NewCollector(c *Control, queues ...string) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("postroom_queue_"+name, help, append([]string{"queue"}, labels...), nil)
	}
	return &collector{
		control:   c,
		queues:    queues,
		tasks:     desc("tasks", "Tasks in the queue, by state.", "state"),
		latency:   desc("latency_seconds", "How long the oldest due task has waited for a worker."),
		processed: desc("processed_total", "Tasks handled."),
		failed:    desc("failed_total", "Tasks whose handler asked for a retry or gave up."),
		paused:    desc("paused", "1 while the queue is paused."),
		memory:    desc("memory_bytes", "Estimated memory that the queue uses in Redis."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.tasks, c.latency, c.processed, c.failed, c.paused, c.memory} {
		to <- d
	}
}

// Collect queries Redis.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	// A scrape has no context.
	ctx, cancel := context.WithTimeout(context.Background(), collectTimeout)
	defer cancel()
	counts, err := c.control.Counts(ctx, c.queues...)
	if err != nil {
		return
	}
	for _, n := range counts {
		c.report(to, n)
		if bytes, err := c.control.Memory(ctx, n.Queue); err == nil {
			to <- prometheus.MustNewConstMetric(c.memory, prometheus.GaugeValue, float64(bytes), n.Queue)
		}
	}
}

// report sends the metrics of one queue.
func (c *collector) report(to chan<- prometheus.Metric, n Counts) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value,
			append([]string{n.Queue}, labels...)...)
	}
	gauge(c.tasks, float64(n.Waiting), string(Waiting))
	gauge(c.tasks, float64(n.Active), string(Active))
	gauge(c.tasks, float64(n.Scheduled), string(Scheduled))
	gauge(c.tasks, float64(n.Retrying), string(Retrying))
	gauge(c.tasks, float64(n.Archived), string(Archived))
	gauge(c.tasks, float64(n.Completed), string(Completed))
	gauge(c.latency, n.Latency.Seconds())
	paused := 0.0
	if n.Paused {
		paused = 1
	}
	gauge(c.paused, paused)
	to <- prometheus.MustNewConstMetric(c.processed, prometheus.CounterValue, float64(n.ProcessedTotal), n.Queue)
	to <- prometheus.MustNewConstMetric(c.failed, prometheus.CounterValue, float64(n.FailedTotal), n.Queue)
}
