package suppression_test

import (
	"fmt"
	"testing"

	"github.com/postroom/postroom/outbox/suppression"
)

// BenchmarkCheck asks about a message to fifty people, one of whom has an entry.
func BenchmarkCheck(b *testing.B) {
	s := setup(b)
	s.add(b, 1, suppression.Entry{Address: "a7@d7.example", Reason: suppression.Manual})
	q := suppression.Question{Account: "shop", List: "news", Bulk: true}
	for i := range 50 {
		q.Addresses = append(q.Addresses, fmt.Sprintf("a%d@d%d.example", i, i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Check(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
