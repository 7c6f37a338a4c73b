package audience_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// BenchmarkImport imports new subscribers with five attributes to one list.
func BenchmarkImport(b *testing.B) {
	const each = 20_000
	house := setup(b)
	house.list(b, "weekly", "double")
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		file := people(n*each, (n+1)*each)
		b.StartTimer()
		if got := house.bring(b, file, subscribed("weekly")); got.Added != each {
			b.Fatalf("%+v", got)
		}
	}
	b.ReportMetric(float64(b.N*each)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkCSV reads and checks the rows of a file, without Redis.
func BenchmarkCSV(b *testing.B) {
	house := setup(b)
	file := people(0, 20_000)
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := house.Imports.Run(b.Context(), "", strings.NewReader(file+file), api.SubscriberImportOptions{
			DryRun: true}); err != nil {
			b.Fatal(err)
		}
	}
}
