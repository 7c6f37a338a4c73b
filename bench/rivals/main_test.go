package main

import "testing"

// TestRivals plays a short game. A long one is `go run ./bench/rivals`.
func TestRivals(t *testing.T) {
	if err := run(t.Context(), 2000, 1); err != nil {
		t.Error(err)
	}
}
