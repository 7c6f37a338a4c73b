package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

// seekFrom is the number of entries to skip from which on look calls seek.
const seekFrom = 1000

// seek narrows a window so that it begins shortly before the entries after the first skip. It returns how
// many are left to skip. It finds the time of that entry by bisection. Otherwise a page in the middle of a
// million entries would read half a million of each index.
func (rd *Reader) seek(ctx context.Context, w window, skip int) (window, int, error) {
	first, last, err := w.span(ctx, rd.DB.Client())
	if err != nil {
		return w, skip, err
	}
	near, left := w, skip
	for low, high := int64(0), last-first+1; high-low > 1 && left > seekFrom; {
		step := (low + high) / 2
		passed, rest := w.split(first, last, step)
		n, err := passed.entries(ctx, rd.DB.Client())
		if err != nil {
			return w, skip, err
		}
		if n > skip {
			high = step
			continue
		}
		low, near, left = step, rest, skip-n
	}
	return near, left, nil
}

// split cuts a window in two, step milliseconds after the beginning of its list.
func (w window) split(first, last, step int64) (passed, rest window) {
	passed, rest = w, w
	if w.newest {
		at := redisdb.Time(last - step + 1)
		passed.after, rest.before = later(w.after, at), earlier(w.before, at)
	} else {
		at := redisdb.Time(first + step)
		passed.before, rest.after = earlier(w.before, at), later(w.after, at)
	}
	return passed, rest
}

// later and earlier treat the zero time as no limit.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

// span returns when the first and the last entry of the window's indexes were created, in Unix milliseconds.
func (w window) span(ctx context.Context, c redis.Cmdable) (first, last int64, _ error) {
	pipe := c.Pipeline()
	var ends []*redis.ZSliceCmd
	for _, ix := range w.indexes {
		ends = append(ends, pipe.ZRangeWithScores(ctx, ix.key, 0, 0), pipe.ZRangeWithScores(ctx, ix.key, -1, -1))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, 0, fmt.Errorf("read the ends of indexes: %w", err)
	}
	for _, end := range ends {
		for _, z := range end.Val() {
			at := int64(z.Score)
			if first == 0 || at < first {
				first = at
			}
			last = max(last, at)
		}
	}
	return first, last, nil
}

// entries counts the entries of a window.
func (w window) entries(ctx context.Context, c redis.Cmdable) (int, error) {
	pipe := c.Pipeline()
	counts := make([]*redis.IntCmd, len(w.indexes))
	for i, ix := range w.indexes {
		counts[i] = w.count(ctx, pipe, ix.key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return 0, fmt.Errorf("count entries of indexes: %w", err)
	}
	n := 0
	for _, c := range counts {
		n += int(c.Val())
	}
	return n, nil
}
