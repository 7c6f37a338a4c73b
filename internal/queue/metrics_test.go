package queue

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reg := prometheus.NewRegistry()
	reg.MustRegister(NewCollector(b.control, Submit, Bulk))
	b.enqueue(t, task("m.1"), Task{Queue: Submit, Type: "strange", ID: "m.2"},
		Task{Queue: Submit, Type: "panics", ID: "m.3"}, later("m.4"))
	if err := b.control.Pause(t.Context(), time.Now(), Bulk); err != nil {
		t.Fatal(err)
	}
	serve(t, b.redis, ServerOptions{Metrics: reg}, map[string]Handler{
		"send":   func(context.Context, Task) Verdict { return Done() },
		"panics": func(context.Context, Task) Verdict { panic("!") },
	})
	until(t, "all have run", func() bool { return b.counts(t).ProcessedTotal == 3 })
	got := gather(t, reg)
	want := map[string]float64{
		"postroom_queue_tasks queue=submit state=scheduled":        1,
		"postroom_queue_tasks queue=submit state=archived":         1,
		"postroom_queue_tasks queue=submit state=pending":          0,
		"postroom_queue_paused queue=submit":                       0,
		"postroom_queue_paused queue=bulk":                         1,
		"postroom_queue_processed_total queue=submit":              3,
		"postroom_queue_failed_total queue=submit":                 2,
		"postroom_queue_latency_seconds queue=bulk":                0,
		"postroom_task_duration_seconds type=send verdict=done":    1,
		"postroom_task_duration_seconds type=send verdict=retry":   0, // preset
		"postroom_task_duration_seconds type=panics verdict=panic": 1,
		"postroom_task_duration_seconds type=unknown verdict=bury": 1,
	}
	for name := range got {
		if _, asked := want[name]; !asked {
			delete(got, name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if _, err := NewServer(b.redis, nil,
		ServerOptions{Metrics: reg, Pools: []Pool{{Queues: map[string]int{Submit: 1}}}}); err == nil {
		t.Error("no error where the metrics are registered already")
	}
}

// gather gives the value of each metric, the number of observations for a histogram.
func gather(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() +
				float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}
