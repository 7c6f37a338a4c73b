package provider

import (
	"strings"
	"testing"
	"time"
)

// BenchmarkSendGridBatch reads and verifies a batch of 1000 events.
func BenchmarkSendGridBatch(b *testing.B) {
	f, _ := loadFixture(b, SendGrid, "delivered_event.json")
	one := strings.Trim(strings.TrimSpace(string(f.Payload)), "[]")
	r := jsonRequest("[" + strings.Repeat(one+",", 999) + one + "]")
	b.SetBytes(int64(len(r.Body)))
	b.ReportAllocs()
	for b.Loop() {
		if batch, err := Read(SendGrid, r); err != nil || len(batch.Events) != 1000 {
			b.Fatal(err)
		}
	}
}

func BenchmarkSNSVerify(b *testing.B) {
	var x snsVector
	loadJSON(b, "signatures/sns_genuine.json", &x)
	v := newVerifier(b, SES, Options{Secrets: []string{x.Messages[1]["TopicArn"]}, Transport: &recorded{
		pages: x.pages()}})
	r, now := encode(b, x.Messages[1]), time.Date(2022, 7, 28, 21, 30, 0, 0, time.UTC)
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Verify(b.Context(), r, now); err != nil {
			b.Fatal(err)
		}
	}
}
