package webhooks

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// toHour moves the clock to the beginning of the next hour, so that a test is within one.
func (b *bundle) toHour() time.Time {
	now := b.clock()
	b.advance(now.Truncate(time.Hour).Add(time.Hour).Sub(now))
	return b.clock().UTC().Truncate(time.Hour)
}

func TestRequestsAreCountedByTheHour(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{200, 503, 200, 400, 200}[n-1])
	}).URL)
	first := b.toHour()
	for _, id := range []string{"E1", "E2"} { // 200; 503, then 200
		b.emit(id, event.MessageSent, "snd")
	}
	b.fanOutAll()
	b.run(ep.ID, "E1")
	b.run(ep.ID, "E2")
	b.run(ep.ID, "E2")
	b.advance(2 * time.Hour)
	b.emit("E3", event.MessageSent, "snd") // 400
	b.fanOutAll()
	b.run(ep.ID, "E3")
	b.run(ep.ID, "E1") // it is over: no request
	if _, err := b.Test(t.Context(), ep.ID, ""); err != nil {
		t.Fatal(err)
	}
	got, err := b.Stats(t.Context(), ep.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := api.EndpointStats{Endpoint: ep.ID, From: first.Add(-21 * time.Hour),
		EndpointCounts: api.EndpointCounts{Requests: 4, Delivered: 2, Retried: 1, Failed: 1, SuccessRate: .5},
		Hours: []api.EndpointHour{
			{Hour: first, EndpointCounts: api.EndpointCounts{Requests: 3, Delivered: 2, Retried: 1,
				SuccessRate: 2. / 3}},
			{Hour: first.Add(2 * time.Hour), EndpointCounts: api.EndpointCounts{Requests: 1, Failed: 1}},
		}}
	times := cmpopts.IgnoreFields(api.EndpointCounts{}, "Latency", "Slowest")
	if diff := cmp.Diff(want, got, times); diff != "" {
		t.Error(diff)
	}
	if got, err := b.Stats(t.Context(), ep.ID, 1); err != nil || got.Requests != 1 || got.Failed != 1 {
		t.Errorf("of this hour alone: %+v, %v", got, err)
	}
	if left := b.db.Client().TTL(t.Context(), hoursKey(ep.ID, first)).Val(); left < 30*24*time.Hour ||
		left > 31*24*time.Hour {
		t.Errorf("the counters live for %s", left)
	}
	other := b.endpoint(answering(t, 200).URL)
	if got, err := b.Stats(t.Context(), other.ID, 720); err != nil || got.Requests != 0 || got.SuccessRate != 0 {
		t.Errorf("an endpoint without requests: %+v, %v", got, err)
	}
	for _, hours := range []int{-1, 721} {
		var wrong *fault.Error
		if _, err := b.Stats(t.Context(), ep.ID, hours); !errors.As(err, &wrong) || len(wrong.Fields) != 1 ||
			wrong.Fields[0].Key != "hours" {
			t.Errorf("%d hours: %v", hours, err)
		}
	}
	if _, err := b.Stats(t.Context(), "nowhere", 1); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown endpoint: %v", err)
	}
}

func TestLatencyIsTheMeanAndTheSlowest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ep := b.endpoint(answering(t, 200).URL)
	at := b.toHour()
	day := hoursKey(ep.ID, at)
	hour := at.Format("15") // as a number
	if hour[0] == '0' {
		hour = hour[1:]
	}
	err := b.db.Client().HSet(t.Context(), day, hour+":delivered", 3, hour+":ms", 100, hour+":slowest", 70).Err()
	if err != nil {
		t.Fatal(err)
	}
	got, err := b.Stats(t.Context(), ep.ID, 1)
	if err != nil || got.Latency != 33 || got.Slowest != 70 || got.Hours[0].Latency != 33 {
		t.Errorf("got %+v, %v", got, err)
	}
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(ep.ID, "E1")
	if got, err := b.Stats(t.Context(), ep.ID, 1); err != nil || got.Requests != 4 || got.Slowest < 70 {
		t.Errorf("after another request: %+v, %v", got, err)
	}
}

func TestDeliveryTellsItsAttempts(t *testing.T) {
	t.Parallel()
	b := setup(t, func(o *Options) { o.Attempts = 13 })
	long := make([]byte, 2_000)
	for i := range long {
		long[i] = 'x'
	}
	ep := b.endpoint(newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n%12 != 0 {
			w.WriteHeader(503)
		}
		_, _ = w.Write(long)
	}).URL)
	b.emit("E1", event.MessageSent, "snd")
	b.fanOutAll()
	for range 12 {
		b.advance(2 * time.Minute) // beyond any rest
		b.run(ep.ID, "E1")
	}
	d := b.delivery(ep.ID, "E1")
	if d.Status != "delivered" || d.Attempts != 12 || len(d.Log) != 10 {
		t.Fatalf("%s after %d attempts, %d of them told", d.Status, d.Attempts, len(d.Log))
	}
	for i, a := range d.Log {
		last := i == 9
		if a.Number != i+3 || last != (a.StatusCode == 200) || last != (a.Error == "") ||
			last != (len(a.Response) == 2_000) || !last && len(a.Response) > tryHead || a.Date.IsZero() {
			t.Errorf("attempt %d of the log: number %d, %d %q, %d bytes", i, a.Number, a.StatusCode, a.Error,
				len(a.Response))
		}
	}
	other := b.endpoint(answering(t, 204).URL)
	b.emit("E2", event.MessageSent, "snd")
	b.fanOutAll()
	b.run(other.ID, "E2")
	d = b.delivery(other.ID, "E2")
	if len(d.Log) != 1 || d.Log[0].Number != 1 || d.Log[0].StatusCode != 204 {
		t.Errorf("a first attempt that succeeded: %+v", d.Log)
	}
	fields := b.db.Client().HKeys(t.Context(), redisdb.Key(0, "webhook", "delivery", other.ID, "E2")).Val()
	for _, f := range fields {
		if len(f) > 4 && f[:4] == tryPrefix {
			t.Error("a first attempt that succeeded is stored twice")
		}
	}
}
