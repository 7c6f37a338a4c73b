package smtpsend_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/postroom/postroom/internal/testsmtp"
	"github.com/postroom/postroom/smtpsend"
)

// BenchmarkSend compares a kept connection with a new one per message, and commands in groups with one at a
// time.
func BenchmarkSend(b *testing.B) {
	for _, bc := range []struct {
		name  string
		sink  testsmtp.Options
		relay smtpsend.Relay
	}{
		{"pooled", testsmtp.Options{}, smtpsend.Relay{}},
		{"pooled/one-by-one", testsmtp.Options{NoPipelining: true}, smtpsend.Relay{}},
		{"new-connection", testsmtp.Options{}, smtpsend.Relay{MessagesPerConnection: 1}},
		{"pooled/tls", testsmtp.Options{Security: testsmtp.Implicit}, smtpsend.Relay{TLS: smtpsend.TLSImplicit}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			bc.sink.Discard = true
			sink := testsmtp.Start(b, bc.sink)
			sender, err := smtpsend.New(smtpsend.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer sender.Close()
			bc.relay.Host, bc.relay.Port, bc.relay.CA = sink.Host(), sink.Port(), sink.CA()
			body := append(bytes.Repeat([]byte("0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 ABCDEFGH\r\n"), 68),
				"end\r\n"...)
			var failed atomic.Pointer[error]
			b.SetParallelism(10)
			b.ReportAllocs()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := sender.Send(context.Background(), bc.relay, smtpsend.Message{
						From: "a@example.com", To: []string{"b@example.org"}, Body: smtpsend.Bytes(body),
						BeforeDot: func(context.Context, []string) error { return nil },
					}); err != nil {
						failed.Store(&err)
					}
				}
			})
			b.StopTimer()
			if err := failed.Load(); err != nil {
				b.Fatal(*err)
			}
			if sink.Count() != b.N {
				b.Fatalf("the sink has %d of %d messages", sink.Count(), b.N)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
		})
	}
}
