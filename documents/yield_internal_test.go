package documents

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestIndexingYieldsToMail: while mail is busy, pieces of indexing take turns, and rest four times as long as they work.
func TestIndexingYieldsToMail(t *testing.T) {
	for name, c := range map[string]struct {
		busy func(done int) bool
		want time.Duration
	}{
		"a calm":              {func(int) bool { return false }, time.Second},     // all ten side by side
		"a storm":             {func(int) bool { return true }, 50 * time.Second}, // one after the other, each of 1 s and 4 s of rest
		"a storm that abates": {func(done int) bool { return done < 3 }, 10*time.Second + 8*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				done := 0
				d := &Documents{turn: make(chan struct{}, 1)}
				d.Busy = func() bool {
					mu.Lock()
					defer mu.Unlock()
					return c.busy(done)
				}
				began := time.Now()
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						if err := d.yielding(t.Context(), func() error {
							time.Sleep(time.Second)
							mu.Lock()
							defer mu.Unlock()
							done++
							return nil
						}); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if took := time.Since(began); took != c.want {
					t.Errorf("took %s, want %s", took, c.want)
				}
			})
		})
	}
}

func TestIndexingThatYieldsEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &Documents{turn: make(chan struct{}, 1)}
		d.Busy = func() bool { return true }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := d.yielding(ctx, func() error { time.Sleep(900 * time.Millisecond); return nil }); err != nil || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		d.turn <- struct{}{}
		if err := d.yielding(ctx, func() error { return errors.New("never") }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
