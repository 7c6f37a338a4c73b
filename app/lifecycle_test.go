package app

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// TestPartsThatFollowStopTogether: each of them needs half a second to stop, and a restart waits for all.
func TestPartsThatFollowStopTogether(t *testing.T) {
	l := &lifecycle{log: slog.New(slog.DiscardHandler)}
	var mu sync.Mutex
	var stopped []string
	part := func(name string, until <-chan struct{}) func(context.Context) error {
		return func(ctx context.Context) error {
			<-ctx.Done()
			select {
			case <-until:
			case <-time.After(time.Minute):
				t.Errorf("%s waits for a part that is not told to stop", name)
			}
			mu.Lock()
			defer mu.Unlock()
			stopped = append(stopped, name)
			return nil
		}
	}
	none, first := make(chan struct{}), make(chan struct{})
	close(none)
	l.onRun("below", part("below", none))
	l.onFollow("first", func(ctx context.Context) error {
		<-ctx.Done()
		close(first)
		return part("first", none)(ctx)
	})
	l.onFollow("second", part("second", first))
	l.onRun("above", part("above", none))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := l.run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(stopped) != 4 || stopped[0] != "above" || stopped[3] != "below" {
		t.Errorf("stopped in the order %q", stopped)
	}
}
