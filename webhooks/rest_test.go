package webhooks

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
)

// failing makes an endpoint that failed five times, and is paused.
func (b *bundle) failing() (api.Endpoint, *receiver) {
	b.t.Helper()
	rc := answering(b.t, 500)
	ep := b.endpoint(rc.URL)
	for _, id := range []string{"E1", "E2", "E3", "E4", "E5", "E6"} {
		b.emit(id, event.MessageSent, "snd")
	}
	b.fanOutAll()
	for _, id := range []string{"E1", "E2", "E3", "E4", "E5"} {
		b.run(ep.ID, id)
	}
	return ep, rc
}

func TestEndpointTellsThatItRests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep, rc := b.failing()
	got, err := b.Endpoint(t.Context(), ep.ID)
	if err != nil || got.Resting == nil {
		t.Fatalf("got %+v, %v", got, err)
	}
	if r := got.Resting; r.Failures != 5 || r.Error != "answered 500 Internal Server Error" ||
		r.Until.Sub(b.clock()) > firstHold || !r.Until.After(b.clock()) {
		t.Errorf("it rests like this: %+v", r)
	}
	page, err := b.Endpoints(t.Context(), 0, 10)
	if err != nil || len(page.Endpoints) != 1 || page.Endpoints[0].Resting == nil {
		t.Errorf("the list: %+v, %v", page, err)
	}
	if r, err := b.Resting(t.Context(), ep.ID); err != nil || r == nil || r.Failures != 5 {
		t.Errorf("asked for alone: %+v, %v", r, err)
	}
	rc.answer = nil
	b.advance(firstHold)
	if v := b.run(ep.ID, "E6"); v != "done" {
		t.Fatalf("the probe: %s", v)
	}
	if got, err := b.Endpoint(t.Context(), ep.ID); err != nil || got.Resting != nil {
		t.Errorf("once it works: %+v, %v", got.Resting, err)
	}
}

// TestDeliveriesTellThatTheyWaitForTheEndpoint, with the time of the next request instead of a past one.
func TestDeliveriesTellThatTheyWaitForTheEndpoint(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep, rc := b.failing()
	b.advance(time.Second) // E6 is due
	r, err := b.Resting(t.Context(), ep.ID)
	if err != nil {
		t.Fatal(err)
	}
	about, err := b.DeliveriesAbout(t.Context(), "snd", false, []string{"E6"})
	if err != nil || len(about.Deliveries) != 1 {
		t.Fatalf("%+v, %v", about, err)
	}
	page, err := b.Deliveries(t.Context(), ep.ID, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(page.Deliveries, func(d api.Delivery) bool { return d.ID == "E6" })
	for _, d := range []api.Delivery{b.delivery(ep.ID, "E6"), about.Deliveries[0], page.Deliveries[i]} {
		if d.Attempts != 0 || d.WaitsUntil == nil || !d.WaitsUntil.Equal(r.Until) ||
			!d.NextAttempt.Time.Equal(r.Until) {
			t.Errorf("it waits until %v, next %v, want %v", d.WaitsUntil, d.NextAttempt.Time, r.Until)
		}
	}
	b.advance(firstHold)
	if d := b.delivery(ep.ID, "E6"); d.WaitsUntil == nil || d.NextAttempt.Time.After(b.clock()) {
		t.Errorf("while it may be asked: %+v", d)
	}
	rc.answer = nil
	b.run(ep.ID, "E6")
	if d := b.delivery(ep.ID, "E1"); d.WaitsUntil != nil {
		t.Errorf("the endpoint is back: %+v", d)
	}
}

func TestRestIsOfAURL(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep, _ := b.failing()
	moved, secret := answering(t, 200).URL, newSecret()
	got, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{URL: &moved, Secret: &secret})
	if err != nil || got.Resting != nil || got.FailingSince != nil {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWakeEndsARestInEveryProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other := build(t, b.db, nil)
	ep, rc := b.failing()
	for _, id := range []string{"E1", "E2", "E3", "E4", "E5"} {
		other.run(ep.ID, id)
	}
	before := len(rc.got())
	if b.run(ep.ID, "E6"); len(rc.got()) != before {
		t.Fatal("it does not rest")
	}
	woken, err := b.Wake(t.Context(), ep.ID)
	if err != nil || woken.Woken != 6 || !slices.Contains(b.spool.run, ref{ep.ID, "E6"}.taskID()) {
		t.Fatalf("woken %+v, %v; run %v", woken, err, b.spool.run)
	}
	if b.run(ep.ID, "E6"); len(rc.got()) != before+1 {
		t.Error("this process still rests")
	}
	if other.run(ep.ID, "E5"); len(rc.got()) != before+2 {
		t.Error("another process still rests")
	}
	if b.run(ep.ID, "E6"); len(rc.got()) != before+2 {
		t.Error("one request ends one rest: the failure begins another")
	}
	if got, err := b.Endpoint(t.Context(), ep.ID); err != nil || got.Resting == nil {
		t.Errorf("the new rest: %+v, %v", got.Resting, err)
	}
}

func TestWakeNeedsAnEndpointThatIsOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	off := false
	if _, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Wake(t.Context(), ep.ID); !fault.Is(err, fault.Conflict) {
		t.Errorf("switched off: %v", err)
	}
	if _, err := b.Wake(t.Context(), "nowhere"); !fault.Is(err, fault.NotFound) {
		t.Errorf("unknown: %v", err)
	}
}

func TestEndpointThatAsksToWaitRests(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(newReceiver(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(429)
	}).URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	r, err := b.Resting(t.Context(), ep.ID)
	if err != nil || r == nil || r.Failures != 1 || !strings.Contains(r.Error, "429") ||
		r.Until.Sub(b.clock()) < 9*time.Minute {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestFailingEndpointsAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	began := b.clock()
	ep, _ := b.failing()
	b.endpoint(answering(t, 200).URL)
	b.advance(time.Hour)
	b.run(ep.ID, "E6")
	found, err := b.Failing(t.Context())
	if err != nil || len(found) != 1 || found[0].Endpoint != ep.ID {
		t.Fatalf("got %+v, %v", found, err)
	}
	if f := found[0]; f.Since.Sub(began).Abs() > time.Minute || f.Last.Sub(f.Since) < 59*time.Minute {
		t.Errorf("failing from %s to %s", f.Since, f.Last)
	}
	off := false
	if _, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{Enabled: &off}); err != nil {
		t.Fatal(err)
	}
	if found, err := b.Failing(t.Context()); err != nil || len(found) != 0 {
		t.Errorf("switched off: %+v, %v", found, err)
	}
}

// TestEndpointsThatPostroomSwitchedOffAreTold until they are on again. One that somebody switched off is not.
func TestEndpointsThatPostroomSwitchedOffAreTold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, http.StatusGone).URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	found, err := b.Failing(t.Context())
	if err != nil || len(found) != 1 || found[0].Endpoint != ep.ID || found[0].Off != "it answered 410 Gone" {
		t.Fatalf("got %+v, %v", found, err)
	}
	for _, enabled := range []bool{true, false} {
		if _, err := b.Patch(t.Context(), ep.ID, api.EndpointPatch{Enabled: &enabled}); err != nil {
			t.Fatal(err)
		}
		if found, err := b.Failing(t.Context()); err != nil || len(found) != 0 {
			t.Errorf("enabled %v: %+v, %v", enabled, found, err)
		}
	}
}
