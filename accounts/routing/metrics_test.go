package routing

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetrics(t *testing.T) {
	w := setup(t)
	w.relays.does = map[string]string{"own": "down"}
	for range failuresToRest {
		w.send(list("own", "b"))
	}
	w.limits.full["gateway:c"] = begin.Add(time.Minute)
	w.send(list("c"))
	err := testutil.GatherAndCompare(w.registry, strings.NewReader(`
# HELP postroom_route_failovers_total Times that an attempt continued with another relay.
# TYPE postroom_route_failovers_total counter
postroom_route_failovers_total 5
# HELP postroom_route_resting Relays that this process has paused, or is about to try again.
# TYPE postroom_route_resting gauge
postroom_route_resting{kind="gateway"} 0
postroom_route_resting{kind="relay"} 1
# HELP postroom_route_rests_total Times that a relay was paused, after 5 failures in a row or one more after a pause.
# TYPE postroom_route_rests_total counter
postroom_route_rests_total{kind="gateway"} 0
postroom_route_rests_total{kind="relay"} 1
# HELP postroom_route_away Relays that haven't replied to this process since an attempt failed or became overdue.
# TYPE postroom_route_away gauge
postroom_route_away 1
# HELP postroom_route_tries_total Relays tried, by kind (relay or gateway) and outcome: delivered, refused (the message or its recipients), unreachable (connection, TLS or login failed), slowed (asked us to slow down), stalled (no reply in time), broken (connection lost).
# TYPE postroom_route_tries_total counter
postroom_route_tries_total{kind="gateway",outcome="broken"} 0
postroom_route_tries_total{kind="gateway",outcome="delivered"} 5
postroom_route_tries_total{kind="gateway",outcome="refused"} 0
postroom_route_tries_total{kind="gateway",outcome="slowed"} 0
postroom_route_tries_total{kind="gateway",outcome="stalled"} 0
postroom_route_tries_total{kind="gateway",outcome="unreachable"} 0
postroom_route_tries_total{kind="relay",outcome="broken"} 0
postroom_route_tries_total{kind="relay",outcome="delivered"} 0
postroom_route_tries_total{kind="relay",outcome="refused"} 0
postroom_route_tries_total{kind="relay",outcome="slowed"} 0
postroom_route_tries_total{kind="relay",outcome="stalled"} 0
postroom_route_tries_total{kind="relay",outcome="unreachable"} 5
# HELP postroom_route_waits_total Messages delayed before any relay was tried, by reason.
# TYPE postroom_route_waits_total counter
postroom_route_waits_total{reason="connections"} 0
postroom_route_waits_total{reason="limit"} 1
postroom_route_waits_total{reason="unavailable"} 0
`))
	if err != nil {
		t.Error(err)
	}
}

func TestNewNeedsItsParts(t *testing.T) {
	if _, err := New(Parts{}, Options{}); err == nil {
		t.Error("made of nothing")
	}
	w := setup(t)
	if _, err := New(w.Parts, Options{Registry: w.registry}); err == nil {
		t.Error("metrics registered twice")
	}
	if r, err := New(w.Parts, Options{}); err != nil || r.now().IsZero() || r.random() >= 1 {
		t.Errorf("defaults: %v", err)
	}
}
