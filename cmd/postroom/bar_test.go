package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// screen keeps what is written to a terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// has waits until a text was written.
func (s *screen) has(t *testing.T, text string) {
	t.Helper()
	for late := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		got := s.text.String()
		s.mu.Unlock()
		if strings.Contains(got, text) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the screen never had %q, but %q", text, got)
		}
	}
}

// TestAnImportShowsWhatWasApplied: the bar once showed what was sent, which is all of a small file at once,
// at gigabytes a second.
func TestAnImportShowsWhatWasApplied(t *testing.T) {
	var out screen
	var applied atomic.Int64
	s := &session{Context: t.Context(), console: &console{err: &out, errTTY: true}}
	stop := s.applied(100, func(context.Context) (int64, error) { return applied.Load(), nil })
	out.has(t, " 0%")
	applied.Store(40)
	out.has(t, " 40%")
	applied.Store(90)
	out.has(t, " 90%")
	stop()
	out.mu.Lock()
	defer out.mu.Unlock()
	if strings.Contains(out.text.String(), "100%") {
		t.Errorf("it shows what was not applied: %q", out.text.String())
	}
}
