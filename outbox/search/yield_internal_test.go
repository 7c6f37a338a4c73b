package search

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestIndexingYieldsToMail: pieces of indexing take turns, and pause the longer the more mail there is.
func TestIndexingYieldsToMail(t *testing.T) {
	for name, c := range map[string]struct {
		pace float64
		want time.Duration // for ten pieces of a second
	}{
		"a calm":         {99, 10 * time.Second},
		"a steady flow":  {300, 50 * time.Second},
		"a storm":        {3000, 200 * time.Second},
		"a larger storm": {30_000, 200 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &Documents{turn: make(chan struct{}, 1)}
				d.Pace = func() float64 { return c.pace }
				began := time.Now()
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if err := d.yielding(t.Context(), func() error { time.Sleep(time.Second); return nil }); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if took := time.Since(began); took.Round(time.Millisecond) != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestIndexingThatYieldsEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Documents{turn: make(chan struct{}, 1)}
		d.Pace = func() float64 { return 3000 }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := d.yielding(ctx, func() error { time.Sleep(900 * time.Millisecond); return nil }); err != nil ||
			time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		d.turn <- struct{}{}
		if err := d.yielding(ctx, func() error { return errors.New("never") }); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
