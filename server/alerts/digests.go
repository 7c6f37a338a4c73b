package alerts

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/internal/queue"
)

// askDigests judges how late digests are. The time of a pause that this process saw does not count: after it,
// workers have as long as at any time.
func (w *Watch) askDigests(ctx context.Context, now time.Time) ([]finding, error) {
	if w.opts.DigestsLate <= 0 {
		return nil, nil
	}
	counts, err := w.counts(ctx, queue.Digests)
	if err != nil {
		return nil, err
	}
	late, err := w.late(ctx)
	if err != nil {
		return nil, err
	}
	if counts[0].Paused {
		w.rested = now
	}
	return []finding{judgeDigests(min(late, now.Sub(w.rested)), w.opts.DigestsLate)}, nil
}

func judgeDigests(late, most time.Duration) finding {
	return finding{
		alert: digestsLate, wrong: late >= most, value: late.Seconds(), threshold: most.Seconds(),
		text: fmt.Sprintf("The oldest digest that is due is %s late. Does a process with role worker run? If so, its "+
			"log says why digests wait, or there are more of them than workers.digests can make.",
			late.Truncate(time.Second)),
	}
}
