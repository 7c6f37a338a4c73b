package webhooks

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/internal/queue"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/testredis"
)

// benchmark makes a Webhooks on a real Redis and queue.
func benchmark(b *testing.B, src *sources) *Webhooks {
	b.Helper()
	ring, err := seal.New([]byte("a secret of thirty-two bytes or more for tests"))
	if err != nil {
		b.Fatal(err)
	}
	db := testredis.New(b)
	w, err := New(db, queue.NewClient(db.Client(), queue.Options{}), queue.NewControl(db.Client()), ring,
		Options{MaxPending: 1 << 30, Implicit: src.Implicit, ServiceURL: src.ServiceURL})
	if err != nil {
		b.Fatal(err)
	}
	return w
}

// batch makes a batch of events as the stream has them, of one account.
func batch(b *testing.B, run int) []redisdb.Entry {
	b.Helper()
	entries := make([]redisdb.Entry, fanOutBatch)
	for i := range entries {
		id := fmt.Sprintf("E%d-%d", run, i)
		e, err := event.New(id, event.MessageSent, "snd", time.Now(), event.Sent{
			Message: event.Message{QueueID: "Q" + id, MessageID: "<" + id + "@example.com>", Envelope: event.Envelope{
				From: "a@example.com", To: []string{"b@example.net"}}},
			Response: "250 2.0.0 Ok: queued as 4XyZ", Accepted: []string{"b@example.net"},
		})
		if err != nil {
			b.Fatal(err)
		}
		line, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		entries[i] = redisdb.Entry{Values: map[string]any{streamField: string(line)}}
	}
	return entries
}

// Thousands of events a second that nobody wants to hear of must cost next to nothing.
func BenchmarkRelayWithoutEndpoints(b *testing.B) {
	w, entries := benchmark(b, &sources{}), batch(b, 0)
	for b.Loop() {
		if err := w.fanOut(b.Context(), entries); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*fanOutBatch)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkRelayToOneEndpoint(b *testing.B) {
	w := benchmark(b, nil)
	if _, err := w.Create(b.Context(), api.EndpointRequest{URL: "https://example.com"}); err != nil {
		b.Fatal(err)
	}
	run := 0
	for b.Loop() {
		b.StopTimer()
		run++
		entries := batch(b, run)
		b.StartTimer()
		if err := w.fanOut(b.Context(), entries); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*fanOutBatch)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkSign(b *testing.B) {
	body, keys := make([]byte, 600), [][]byte{make([]byte, secretSize)}
	for b.Loop() {
		standardSignature("01J8ZK0E5T_endpoint", time.Unix(1_700_000_000, 0), body, keys)
		serviceSignature(body, serviceSecret)
	}
}
