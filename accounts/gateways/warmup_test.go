package gateways

import (
	"testing"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testredis"
)

func TestAWarmupAllowsMoreEachDay(t *testing.T) {
	began := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	route := func(w api.Warmup, most float64) Relay {
		w.Started = &began
		return Relay{Rate: limits.Rate{PerSecond: 5, PerDay: most}, Warmup: &w}
	}
	for _, row := range []struct {
		name  string
		route Relay
		after time.Duration
		want  float64 // a day
	}{
		{"before the first day", route(api.Warmup{PerDay: 50}, 0), -time.Hour, 50},
		{"on the first day", route(api.Warmup{PerDay: 50}, 0), 23 * time.Hour, 50},
		{"on the second", route(api.Warmup{PerDay: 50}, 0), 24 * time.Hour, 75},
		{"on the third", route(api.Warmup{PerDay: 50}, 0), 49 * time.Hour, 112},
		{"doubling", route(api.Warmup{PerDay: 50, Growth: 2}, 0), 3 * 24 * time.Hour, 400},
		{"not growing", route(api.Warmup{PerDay: 50, Growth: 1}, 0), 30 * 24 * time.Hour, 50},
		{"up to the limit", route(api.Warmup{PerDay: 50, Growth: 2}, 1000), 4 * 24 * time.Hour, 800},
		{"over", route(api.Warmup{PerDay: 50, Growth: 2}, 1000), 5 * 24 * time.Hour, 1000},
		{"over, without a limit", route(api.Warmup{PerDay: 50, Growth: 2}, 0), 365 * 24 * time.Hour, 0},
	} {
		got := row.route.RateAt(began.Add(row.after))
		if got != (limits.Rate{PerSecond: 5, PerDay: row.want}) {
			t.Errorf("%s: %+v, want %g a day", row.name, got, row.want)
		}
	}
}

func TestAWarmupBeginsWhenItIsSet(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	r, err := New(testredis.New(t), testkit.Ring(t, "k"), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	g := api.Gateway{Gateway: "g", Name: "G", Host: "relay.test", Port: 25, Warmup: &api.Warmup{PerDay: 50}}
	if _, err := r.Create(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	name := "other"
	if _, err := r.Update(t.Context(), "g", api.GatewayPatch{Name: &name}); err != nil {
		t.Fatal(err)
	}
	route, err := r.Resolve(t.Context(), "g")
	if err != nil || route.RateAt(now).PerDay != 75 {
		t.Errorf("a day later %+v, %v; want 75 a day", route.RateAt(now), err)
	}
	g.Limits, g.Warmup = &api.Limits{PerDay: 40}, &api.Warmup{PerDay: 50, Growth: 0.5}
	if _, err := r.Create(t.Context(), g); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a warm-up beyond the limit, and one that shrinks: %v", err)
	}
}
