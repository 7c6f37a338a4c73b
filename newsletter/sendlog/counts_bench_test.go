package sendlog

import (
	"bytes"
	"testing"
)

// BenchmarkCounts reads the counters of a run of 1,000,000 people in 3 groups, and counts them again. All got
// the mail, a quarter opened it and an eighth clicked.
func BenchmarkCounts(b *testing.B) {
	const people = 1_000_000
	log, ctx := setup(b), b.Context()
	half := ChunkSize / 2
	for chunk := range Chunks(people) {
		size := min(half, (people-chunk*ChunkSize)/2)
		for key, value := range map[string][]byte{
			"":           bytes.Repeat([]byte{byte(Sent<<4 | Sent)}, size),
			":groups":    bytes.Repeat([]byte{0x01, 0x81, 0x88, 0x88}, size/4),
			":delivered": bytes.Repeat([]byte{0xff}, size/4),
			":opened":    bytes.Repeat([]byte{0x24}, size/4),
			":clicked":   bytes.Repeat([]byte{0x10}, size/4),
		} {
			do(b, log.db.Client().Set(ctx, logKey(run5, chunk)+key, value, 0).Err())
		}
	}
	b.Run("recount", func(b *testing.B) {
		for b.Loop() {
			_, err := log.Recount(ctx, run5, people)
			do(b, err)
		}
	})
	b.Run("counters", func(b *testing.B) {
		for b.Loop() {
			chunks, err := log.Chunks(ctx, run5, people)
			if do(b, err); Sum(chunks).Groups[1].States[Sent] != people/4 {
				b.Fatalf("%+v", Sum(chunks).Groups)
			}
		}
	})
	b.Run("people", func(b *testing.B) { // as a look at each would have it
		for b.Loop() {
			for chunk := range Chunks(people) {
				_, _, err := log.everybody(ctx, run5, chunk)
				do(b, err)
			}
		}
	})
}
