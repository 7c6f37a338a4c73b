package apisend

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testapi"
	"github.com/postroom/postroom/smtpsend"
)

// BenchmarkLists sends 2,000 messages of 200 callers through an API that takes 100 ms, over 4 connections.
func BenchmarkLists(b *testing.B) {
	for name, batch := range map[string]int{"one by one": 1, "in lists": 0} {
		b.Run(name, func(b *testing.B) {
			server, s, to := mapped(b, api.GatewayPostmark, testapi.Options{Latency: 100 * time.Millisecond})
			to.Connections, to.Batch = 4, batch
			for b.Loop() {
				atOnce(b, 200, 2000, func(i int) error {
					_, err := s.Send(context.Background(), to, note(i, "ann@example.net"))
					return err
				})
			}
			b.ReportMetric(float64(2000*b.N)/b.Elapsed().Seconds(), "messages/s")
			b.ReportMetric(float64(len(server.Requests()))/float64(b.N), "requests")
		})
	}
}

// BenchmarkEndpoint sends 50 requests at the same time, again and again, to an API that takes 100 ms: as
// messages, and by a bare client.
func BenchmarkEndpoint(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(100 * time.Millisecond)
	}))
	b.Cleanup(server.Close)
	s, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	to := Target{Type: api.GatewayHTTP, ID: "gw", URL: server.URL, Secret: testapi.DefaultSecret,
		Connections: 50}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
	m := note(1, "ann@example.net")
	q, err := endpointRequest(to, &mail{Message: m, raw: m.Body.(smtpsend.Bytes)}, group{})
	if err != nil {
		b.Fatal(err)
	}
	for name, send := range map[string]func(int) error{
		"messages": func(i int) error {
			_, err := s.Send(context.Background(), to, note(i, "ann@example.net"))
			return err
		},
		"bare client": func(int) error {
			r, err := client.Post(server.URL, "application/json", bytes.NewReader(q.body))
			if err != nil {
				return err
			}
			defer r.Body.Close()
			_, err = io.Copy(io.Discard, r.Body)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				atOnce(b, 50, 500, send)
			}
			b.ReportMetric(float64(500*b.N)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}

// atOnce does so many things, some at the same time.
func atOnce(b *testing.B, some, all int, do func(int) error) {
	b.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range some {
		group.Go(func() {
			for i := int(next.Add(1)); i <= all; i = int(next.Add(1)) {
				if err := do(i); err != nil {
					b.Error(fmt.Errorf("%d: %w", i, err))
				}
			}
		})
	}
	group.Wait()
}
