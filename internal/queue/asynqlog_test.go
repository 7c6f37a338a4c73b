package queue

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTroubleIsLoggedSeldom: several loops that each fail all the time make one line of a kind in ten
// seconds, and no kind hides another.
func TestTroubleIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newAsynqLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
					return slog.Attr{}
				}
				return a
			},
		})))
		l.Error(`Failed to delete expired completed tasks from queue "submit": EOF`)
		var loops sync.WaitGroup
		for range 4 {
			loops.Go(func() {
				for i := range 45 { // half a second apart: 22 seconds
					l.Error(fmt.Sprintf("Dequeue error: dial tcp: attempt %d", i))
					time.Sleep(500 * time.Millisecond)
				}
			})
		}
		time.Sleep(time.Second)
		l.Error(`Failed to delete expired completed tasks from queue "bulk": EOF`)
		loops.Wait()
		want := []string{
			`detail="Failed to delete expired completed tasks from queue \"submit\": EOF" suppressed=0`,
			`detail="Dequeue error: dial tcp: attempt 0" suppressed=0`,
			`detail="Dequeue error: dial tcp: attempt 20" suppressed=79`,
			`detail="Dequeue error: dial tcp: attempt 40" suppressed=79`,
		}
		if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(out.String()), "\n")); diff != "" {
			t.Error(diff)
		}
	})
}
