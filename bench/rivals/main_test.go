package main

import (
	"strings"
	"testing"
)

// TestRivals plays a short game. A long one is `go run ./bench/rivals`.
func TestRivals(t *testing.T) {
	if err := run(t.Context(), 2000, 1, nil); err != nil {
		t.Error(err)
	}
}

// TestRivalsNoticePosing plays with the check of senders switched off. The judge must notice in both.
func TestRivalsNoticePosing(t *testing.T) {
	err := run(t.Context(), 600, 1, map[string]string{"senders.enforce": "off"})
	if err == nil {
		t.Fatal("nothing was noticed")
	}
	for _, name := range []string{"ann", "bob"} {
		noticed := false
		for line := range strings.Lines(err.Error()) {
			_, after, found := strings.Cut(line, name+": ")
			noticed = noticed || found && strings.Contains(after, posed)
		}
		if !noticed {
			t.Errorf("%s: %q was not noticed: %v", name, posed, err)
		}
	}
}
