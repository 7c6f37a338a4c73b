package e2e_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestTheTeamIsAlertedWhenMailStops has a relay stop answering, without a monitoring system.
func TestTheTeamIsAlertedWhenMailStops(t *testing.T) {
	t.Parallel()
	slow := apptest.NewGate("MAIL")
	relay := testsmtp.Start(t, testsmtp.Options{Respond: slow.Respond})
	t.Cleanup(slow.Open)
	team, log := alerted(t), &apptest.Log{}
	a := apptest.RunLogging(t, map[string]string{
		"smtp": relay.URL(), "from": "shop@example.com", "webhooks.allowPrivate": "true", "workers.submit": "1",
		"alerts.every": "1s", "alerts.queueAge": "2s",
	}, slog.New(slog.NewTextHandler(log, nil)))
	client := api.NewClient(a.URL(), a.Token(), nil)
	_, err := api.CreateEndpoint.Do(t.Context(), client, api.EndpointRequest{URL: team.URL, Events: []string{
		"alertRaised", "alertResolved"}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 6 { // more than there are workers
		to := api.Addresses{{Address: fmt.Sprintf("ann+%d@example.net", n)}}
		if _, err := api.Submit.Do(t.Context(), client, api.SubmitRequest{To: to, Text: "Hello"}); err != nil {
			t.Fatal(err)
		}
		apptest.Eventually(t, "the worker is with the relay", slow.Reached)
	}
	raised := team.wait(t, event.AlertRaised, "queueAge", "submit")
	if raised.Value < 2 || raised.Threshold != 2 || !strings.Contains(raised.Text, "they connect to are slow") {
		t.Errorf("%+v", raised)
	}
	apptest.Eventually(t, "the log has a line",
		func() bool { return log.Has(`level=ERROR msg="alert raised" alert=queueAge`) })
	apptest.Eventually(t, "the metric shows it",
		func() bool { return strings.Contains(metrics(t, a), "postroom_alert{alert=\"queueAge\"} 1\n") })

	slow.Open()
	resolved := team.wait(t, event.AlertResolved, "queueAge", "submit")
	if !resolved.Since.Equal(raised.Since) || resolved.Resolved == nil ||
		!resolved.Resolved.After(raised.Since) {
		t.Errorf("%+v", resolved)
	}
	// on a busy host webhooks may wait for 2 s, too
	others := func(a event.Alert) bool { return a.Queue != "submit" }
	if raised := slices.DeleteFunc(team.all(event.AlertRaised), others); len(raised) != 1 {
		t.Errorf("%d alerts about one trouble: %+v", len(raised), raised)
	}
}

// TestTheTeamIsAlertedOfARedisThatForgets has Redis stop writing to disk under two processes.
func TestTheTeamIsAlertedOfARedisThatForgets(t *testing.T) {
	t.Parallel()
	server := testredis.Server(t)
	relay, team := testsmtp.Start(t, testsmtp.Options{}), alerted(t)
	settings := func() map[string]string {
		return map[string]string{
			"redis.url": server.URL(), "smtp": relay.URL(), "from": "shop@example.com",
			"webhooks.allowPrivate": "true", "alerts.every": "1s",
			"secret": strings.Repeat("s", 32), "token": strings.Repeat("t", 32),
		}
	}
	a := apptest.Run(t, settings())
	apptest.Run(t, settings())
	if _, err := api.CreateEndpoint.Do(t.Context(), api.NewClient(a.URL(), a.Token(), nil), api.EndpointRequest{
		URL: team.URL}); err != nil {
		t.Fatal(err)
	}
	persist := func(set string) {
		t.Helper()
		if err := apptest.Connect(t, server.URL()).Client().ConfigSet(t.Context(), "appendonly",
			set).Err(); err != nil {
			t.Fatal(err)
		}
	}
	persist("no")
	raised := team.wait(t, event.AlertRaised, "redisForgets", "")
	if !strings.Contains(raised.Text, "Set appendonly yes.") {
		t.Errorf("%+v", raised)
	}
	persist("yes")
	team.wait(t, event.AlertResolved, "redisForgets", "")
	if raised, resolved := team.all(event.AlertRaised), team.all(event.AlertResolved); len(raised) != 1 ||
		len(resolved) != 1 {
		t.Errorf("of two processes: raised %+v, resolved %+v", raised, resolved)
	}
}

// team receives the alerts.
type team struct {
	*httptest.Server
	mu  sync.Mutex
	got []alertHook
}

type alertHook struct {
	Event event.Type  `json:"event"`
	ID    string      `json:"eventId"`
	Data  event.Alert `json:"data"`
}

func alerted(t *testing.T) *team {
	r := &team{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var h alertHook
		if err := json.NewDecoder(req.Body).Decode(&h); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		// webhooks are delivered at least once
		if !slices.ContainsFunc(r.got, func(g alertHook) bool { return g.ID == h.ID }) {
			r.got = append(r.got, h)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// all returns the alerts of one type.
func (r *team) all(kind event.Type) []event.Alert {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []event.Alert
	for _, h := range r.got {
		if h.Event == kind {
			all = append(all, h.Data)
		}
	}
	return all
}

func (r *team) wait(t *testing.T, kind event.Type, name, queue string) (found event.Alert) {
	t.Helper()
	apptest.Eventually(t, fmt.Sprintf("the webhook %s of %s", kind, name), func() bool {
		all := r.all(kind)
		i := slices.IndexFunc(all, func(a event.Alert) bool { return a.Alert == name && a.Queue == queue })
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// TestTheTeamIsAlertedOfLateDigests has a digest that is due while no process makes any. Once one does, the
// alert ends.
func TestTheTeamIsAlertedOfLateDigests(t *testing.T) {
	t.Parallel()
	server, relay := testredis.Server(t), testsmtp.Start(t, testsmtp.Options{})
	settings := func(role string) map[string]string {
		return map[string]string{
			"redis.url": server.URL(), "role": role, "smtp": relay.URL(), "from": "shop@example.com",
			"alerts.every": "1s", "alerts.digestsLate": "2s", "digest.mode": "immediate", "digest.gap": "0",
			"secret": strings.Repeat("s", 32), "token": strings.Repeat("t", 32),
		}
	}
	a := apptest.Run(t, settings("api"))
	client := api.NewClient(a.URL(), a.Token(), nil)
	_, err := api.TakeDigestEvents.Do(t.Context(), client, api.DigestEventsRequest{DigestEvent: api.DigestEvent{
		Recipient: "u1", Email: "ann@example.net", Category: "comment", EntityType: "post", EntityID: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	late := func() bool {
		stats, err := api.GetStats.Do(t.Context(), client, api.CounterQuery{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(stats.Alerts, func(a api.Alert) bool {
			return a.Alert == "digestsLate" && a.Threshold == 2
		})
	}
	apptest.Eventually(t, "an alert is raised", late)
	apptest.Run(t, settings("worker"))
	apptest.Eventually(t, "the alert is resolved", func() bool { return !late() })
	relay.Wait(1)
}
