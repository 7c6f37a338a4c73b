package webhooks

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/testredis"
)

func TestEventReachesItsEndpointSigned(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("thanks\x1b[2J"))
	})
	b := setup(t)
	now := b.clock()
	b.now = func() time.Time { return now } // the time that a delivery was queued for is in a header
	ep := b.endpoint(rc.URL+"/hook?token=t0p", func(r *api.EndpointRequest) {
		r.Headers = map[string]string{"X-My": "v1"}
	})
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "done" {
		t.Fatalf("verdict %s\n%s", v, b.log)
	}
	got := rc.got()
	if len(got) != 1 {
		t.Fatalf("%d requests", len(got))
	}
	wh, err := standardwebhooks.NewWebhook(ep.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := wh.Verify(got[0].body, got[0].header); err != nil {
		t.Errorf("the reference library does not verify: %v", err)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-My": "v1", "X-EE-Wh-Event-Id": "E1", "X-EE-Wh-Id": "E1",
		"X-EE-Wh-Attempts-Made": "0",
		"X-EE-Wh-Queued-Time":   "0s", "User-Agent": "postroom/1.2.3", "Webhook-Id": "E1_" + ep.ID,
		"X-EE-Wh-Signature": serviceSignature(got[0].body, serviceSecret),
	} {
		if h := got[0].header.Get(name); h != want {
			t.Errorf("%s: %q, want %q", name, h, want)
		}
	}
	d := b.delivery(ep.ID, "E1")
	if d.Status != "delivered" || d.Attempts != 1 || d.StatusCode != 200 || d.Response != "thanks\uFFFD[2J" ||
		d.QueueID != "QE1" ||
		d.Event != "messageSent" || d.Account != "snd" || d.NextAttempt.Time != nil || d.LastAttempt == nil ||
		string(d.Body) != string(got[0].body) {
		t.Errorf("delivery %+v", d)
	}
	if v := b.run(ep.ID, "E1"); v != "drop" || len(rc.got()) != 1 {
		t.Errorf("a stale task: verdict %s, %d requests", v, len(rc.got()))
	}
}

func TestRetriesUntilAttemptsAreUsedUp(t *testing.T) {
	t.Parallel()
	rc := answering(t, 500)
	b := setup(t, func(o *Options) { o.Attempts = 3 })
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	for i, wait := range []time.Duration{10 * time.Second, 20 * time.Second} {
		before := b.clock()
		if v := b.run(ep.ID, "E1"); v != "retry" {
			t.Fatalf("attempt %d: %s", i+1, v)
		}
		d := b.delivery(ep.ID, "E1")
		if d.Status != "pending" || d.Attempts != i+1 || d.StatusCode != 500 || d.NextAttempt.Time == nil {
			t.Fatalf("after attempt %d: %+v", i+1, d)
		}
		if got := d.NextAttempt.Time.Sub(before); got < wait-time.Second || got > wait+20*time.Second {
			t.Errorf("attempt %d waits %s, want about %s", i+2, got, wait)
		}
		b.advance(wait)
	}
	if v := b.run(ep.ID, "E1"); v != "bury" {
		t.Fatalf("last attempt: %s", v)
	}
	if d := b.delivery(ep.ID, "E1"); d.Status != "failed" || d.Attempts != 3 ||
		d.Error != "answered 500 Internal Server Error" {
		t.Errorf("%+v", d)
	}
	ids := map[string]bool{}
	for i, r := range rc.got() {
		ids[r.header.Get("webhook-id")] = true
		if made := r.header.Get("X-EE-Wh-Attempts-Made"); made != strconv.Itoa(i) {
			t.Errorf("request %d says %s attempts made", i+1, made)
		}
	}
	if len(ids) != 1 {
		t.Errorf("webhook-id is not stable: %v", ids)
	}
}

// An operator who runs a buried task from the dashboard gets an attempt for it.
func TestFailedDeliveryRunFromTheDashboard(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.WriteHeader(400)
		}
	})
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "bury" {
		t.Fatalf("a 400: %s", v)
	}
	if v := b.run(ep.ID, "E1"); v != "done" {
		t.Fatalf("run again: %s", v)
	}
	if d := b.delivery(ep.ID, "E1"); d.Status != "delivered" || d.Attempts != 2 || d.Error != "" {
		t.Errorf("%+v", d)
	}
}

func TestRetryAfterHoldsTheWholeEndpoint(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(429)
		}
	})
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.emit("E2", event.MessageSent, "snd")
	b.fanOutAll()
	before := b.clock()
	if v := b.run(ep.ID, "E1"); v != "retry" {
		t.Fatal(v)
	}
	if wait := b.delivery(ep.ID, "E1").NextAttempt.Time.Sub(before); wait < 599*time.Second ||
		wait > 630*time.Second {
		t.Errorf("waits %s, the endpoint asked for 10 minutes", wait)
	}
	if v := b.run(ep.ID, "E2"); v != "not_now" || len(rc.got()) != 1 {
		t.Errorf("meanwhile another delivery: %s, %d requests", v, len(rc.got()))
	}
	b.advance(11 * time.Minute)
	if v := b.run(ep.ID, "E2"); v != "done" {
		t.Errorf("afterwards: %s", v)
	}
}

func TestGoneDisablesTheEndpoint(t *testing.T) {
	t.Parallel()
	rc := answering(t, 410)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.emit("E2", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "bury" {
		t.Fatal(v)
	}
	got, err := b.Endpoint(t.Context(), ep.ID)
	if err != nil || got.Enabled || got.DisabledReason != "it answered 410 Gone" {
		t.Errorf("endpoint %+v, %v", got, err)
	}
	if v := b.run(ep.ID, "E2"); v != "drop" || b.delivery(ep.ID, "E2").Status != "skipped" {
		t.Errorf("queued delivery of a disabled endpoint: %s %+v", v, b.delivery(ep.ID, "E2"))
	}
	target, err := b.dir.find(t.Context(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	// as another worker does that met the same
	if err := b.disable(t.Context(), target, "it answered 410 Gone", time.Time{}); err != nil {
		t.Fatal(err)
	}
	disabledEvents(t, b, ep.ID, 1)
	if !strings.Contains(b.log.String(), "level=ERROR msg=\"webhook endpoint switched off\"") {
		t.Error("the operator is not told")
	}
	on := true
	if got, err = b.Update(t.Context(), ep.ID, api.EndpointRequest{URL: rc.URL, Enabled: &on}); err != nil ||
		!got.Enabled || got.DisabledReason != "" {
		t.Errorf("switched on again: %+v, %v", got, err)
	}
	b.emit("E3", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E3"); v != "bury" { // it is asked again, and still gone
		t.Errorf("after switching on: %s", v)
	}
}

// disabledEvents expects so many webhookDisabled events about an endpoint in the stream.
func disabledEvents(t *testing.T, b *bundle, endpoint string, want int) {
	t.Helper()
	n := 0
	for _, entry := range b.entries() {
		e, err := event.Parse([]byte(entry.Text(streamField)))
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != event.WebhookDisabled {
			continue
		}
		var d disabled
		if err := json.Unmarshal(e.Data, &d); err != nil || d.Endpoint != endpoint || d.Host == "" ||
			d.Reason == "" {
			t.Errorf("event %s: %v", e.Data, err)
		}
		n++
	}
	if n != want {
		t.Errorf("%d webhookDisabled events, want %d", n, want)
	}
}

func TestEndpointFailingForTooLongIsDisabled(t *testing.T) {
	t.Parallel()
	works := false
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		if !works {
			w.WriteHeader(503)
		}
	})
	b := setup(t, func(o *Options) { o.Attempts = 100 })
	ep := b.endpoint(rc.URL)
	for _, id := range []string{"E1", "E2"} {
		b.emit(id, event.MessageSent, "snd")
	}
	b.fanOutAll()
	enabled := func() api.Endpoint {
		t.Helper()
		e, err := b.Endpoint(t.Context(), ep.ID)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	b.run(ep.ID, "E1")
	if e := enabled(); e.FailingSince == nil || !e.Enabled {
		t.Fatalf("after a failure: %+v", e)
	}
	b.advance(119 * time.Hour)
	b.run(ep.ID, "E1")
	if !enabled().Enabled {
		t.Fatal("disabled before its time")
	}
	works = true
	if v := b.run(ep.ID, "E2"); v != "done" { // a success starts the count again
		t.Fatal(v)
	}
	if e := enabled(); e.FailingSince != nil {
		t.Fatalf("after a success: %+v", e)
	}
	works = false
	b.advance(2 * time.Hour)
	b.run(ep.ID, "E1")
	b.advance(120 * time.Hour)
	if !enabled().Enabled {
		t.Fatal("disabled without a failure")
	}
	b.run(ep.ID, "E1")
	if e := enabled(); e.Enabled || !strings.HasPrefix(e.DisabledReason, "no delivery succeeded since 20") {
		t.Errorf("after 120 h of failures: %+v", e)
	}
	b.run(ep.ID, "E1")
	disabledEvents(t, b, ep.ID, 1)
}

// The worker dies after the request and before the record: the event is sent again, and the receiver can
// recognize it.
func TestKilledBetweenRequestAndRecord(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	r := ref{Endpoint: ep.ID, Delivery: "E1"}
	target, err := b.dir.find(t.Context(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	begun, _, err := b.begin(t.Context(), r, target)
	if err != nil {
		t.Fatal(err)
	}
	x := posting{to: target, event: begun.event, delivery: "E1", attempt: begun.attempt, created: begun.created}
	if got := b.poster.post(t.Context(), x, b.clock()); !got.ok() {
		t.Fatal(got.fault())
	}
	if v := b.run(ep.ID, "E1"); v != "done" { // the queue hands the task out again
		t.Fatal(v)
	}
	got := rc.got()
	if len(got) != 2 || got[0].header.Get("webhook-id") != got[1].header.Get("webhook-id") ||
		string(got[0].body) != string(got[1].body) {
		t.Errorf("%d requests: %v", len(got), got)
	}
	// The first worker was only slow, and now reports a failure: the success stands.
	if _, err := b.finish(t.Context(), r, finishing{attempt: begun.attempt, status: statusFailed,
		url: target.url}); err != nil {
		t.Fatal(err)
	}
	if d := b.delivery(ep.ID, "E1"); d.Status != "delivered" || d.Attempts != 2 {
		t.Errorf("%+v", d)
	}
}

// A worker that must stop gives its attempt back: stopping Postroom uses up no attempts.
func TestStopGivesTheAttemptBack(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	rc := newReceiver(t, func(n int, _ http.ResponseWriter, r *http.Request) {
		if n == 1 {
			close(arrived)
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
	})
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	ctx, stop := cancelled(t)
	go func() { <-arrived; stop() }()
	if v := b.Deliver(ctx, ref{Endpoint: ep.ID, Delivery: "E1"}.task()); v.String() != "not_now" {
		t.Errorf("verdict %s", v)
	}
	close(release)
	if d := b.delivery(ep.ID, "E1"); d.Status != "pending" || d.Attempts != 0 {
		t.Errorf("%+v", d)
	}
	if v := b.run(ep.ID, "E1"); v != "done" {
		t.Errorf("later: %s", v)
	}
}

func TestRateLimitReservesEachPlaceOnce(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	b := setup(t)
	ep := b.endpoint(rc.URL, func(r *api.EndpointRequest) { r.RateLimit = 2 })
	start := b.clock().Truncate(time.Second)
	b.now = func() time.Time { return start } // time stands still
	for i := range 6 {
		b.emit("E"+strconv.Itoa(i), event.MessageSent, "snd")
	}
	b.fanOutAll()
	verdicts, places := map[string]int{}, map[time.Duration]int{}
	for range 3 { // tasks that come back too early change nothing
		for i := range 6 {
			id := "E" + strconv.Itoa(i)
			v := b.run(ep.ID, id)
			verdicts[v]++
			if v == "not_now" {
				places[b.delivery(ep.ID, id).NextAttempt.Time.Sub(start)]++
			}
		}
	}
	if len(rc.got()) != 2 || verdicts["done"] != 2 || verdicts["not_now"] != 12 {
		t.Errorf("%d requests, verdicts %v", len(rc.got()), verdicts)
	}
	for k := 1; k <= 4; k++ {
		if places[time.Duration(k)*500*time.Millisecond] != 3 {
			t.Errorf("place %d is not one delivery's alone: %v", k, places)
		}
	}
	b.now = func() time.Time { return start.Add(2 * time.Second) }
	for i := range 6 {
		if v := b.run(ep.ID, "E"+strconv.Itoa(i)); v == "not_now" {
			t.Errorf("E%d waits a second time", i)
		}
	}
	if len(rc.got()) != 6 {
		t.Errorf("%d requests in the end", len(rc.got()))
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	inside := answering(t, 200)
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
	})
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "retry" || len(inside.got()) != 0 {
		t.Errorf("verdict %s, %d requests behind the redirect", v, len(inside.got()))
	}
}

func TestNoAnswerInTimeIsRetried(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	rc := newReceiver(t, func(_ int, _ http.ResponseWriter, r *http.Request) { <-release })
	defer close(release)
	b := setup(t, func(o *Options) { o.Timeout = 200 * time.Millisecond })
	ep := b.endpoint(rc.URL + "/?token=t0p")
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "retry" {
		t.Fatal(v)
	}
	d := b.delivery(ep.ID, "E1")
	if !strings.HasPrefix(d.Error, "no answer within 200ms") || strings.Contains(d.Error, "t0p") ||
		d.StatusCode != 0 {
		t.Errorf("%+v", d)
	}
}

func TestLongAnswerIsCut(t *testing.T) {
	t.Parallel()
	rc := newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(strings.Repeat("\x00<é>", 1<<20)))
	})
	b := setup(t)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	if v := b.run(ep.ID, "E1"); v != "done" {
		t.Fatal(v)
	}
	if d := b.delivery(ep.ID, "E1"); len(d.Response) > headSize || len(d.Response) < headSize-8 ||
		strings.Contains(d.Response, "\x00") {
		t.Errorf("%d bytes kept", len(d.Response))
	}
}

func TestTaskWithoutDeliveryIsBuried(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, payload := range []string{"", "null", "{}", `{"endpoint":"x"}`, "\xff"} {
		if v := b.Deliver(t.Context(), queue.Task{ID: "t", Payload: []byte(payload)}); v.String() != "bury" {
			t.Errorf("payload %q: %s", payload, v)
		}
	}
	if v := b.run("nowhere", "E1"); v != "drop" {
		t.Errorf("unknown endpoint: %s", v)
	}
}

// While Redis is away the delivery comes back; the endpoint stays known and gets the event once Redis is
// back.
func TestRedisAwayDuringDelivery(t *testing.T) {
	t.Parallel()
	rc := answering(t, 200)
	server := testredis.Server(t)
	b := build(t, testredis.Connect(t, dbOptions(server.URL())), nil)
	ep := b.endpoint(rc.URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	server.Stop()
	ctx, cancel := deadline(t, 3*time.Second)
	defer cancel()
	if v := b.Deliver(ctx, ref{Endpoint: ep.ID, Delivery: "E1"}.task()); v.String() != "retry" {
		t.Errorf("verdict %s", v)
	}
	server.Cont()
	if v := b.run(ep.ID, "E1"); v != "done" {
		t.Errorf("afterwards: %s", v)
	}
}
