package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// BenchmarkSubmit measures all that the server adds to a submit: routing, auth, reading, writing, metrics;
// without a socket, and with parts that do nothing.
func BenchmarkSubmit(b *testing.B) {
	p := newParts(b)
	p.submit = func(api.SubmitRequest) (api.SubmitAnswer, error) {
		return api.SubmitAnswer{Response: "Queued for delivery", MessageID: "<1@example.com>", QueueID: "q1"}, nil
	}
	s, err := New(p.Parts, Options{Listen: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	body := strings.NewReader(typicalSubmit)
	req := httptest.NewRequest(http.MethodPost, "/v1/submit", body)
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", "application/json")
	b.SetBytes(int64(len(typicalSubmit)))
	b.ReportAllocs()
	for b.Loop() {
		body.Reset(typicalSubmit)
		rec := httptest.NewRecorder()
		if s.Echo().ServeHTTP(rec, req); rec.Code != http.StatusOK {
			b.Fatal(rec.Body)
		}
	}
}
