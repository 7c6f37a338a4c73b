package search

import "testing"

// TestARebuildCountsEachMessageOnce: it reads most messages twice, from the old index and from the log.
func TestARebuildCountsEachMessageOnce(t *testing.T) {
	for _, tc := range []struct {
		name                               string
		carried, documents, filled, logged int
		done, total                        int
	}{
		{"nothing is there", 0, 0, 0, 0, 0, 0},
		{"it begins", 0, 100, 0, 100, 0, 100},
		{"the old index is copied", 100, 100, 0, 100, 50, 100},
		{"half of the log, too", 100, 100, 50, 100, 75, 100},
		{"all of it", 100, 100, 100, 100, 100, 100},
		{"a first index", 0, 0, 30, 60, 30, 60},
		{"the log forgot some", 100, 100, 20, 20, 100, 100},
		{"more came meanwhile", 100, 100, 130, 120, 120, 120},
	} {
		if done, total := rebuilt(tc.carried, tc.documents, tc.filled, tc.logged); done != tc.done ||
			total != tc.total {
			t.Errorf("%s: got %d of %d, want %d of %d", tc.name, done, total, tc.done, tc.total)
		}
	}
}
