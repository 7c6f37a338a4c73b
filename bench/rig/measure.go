package rig

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Title prints the heading of a part of the table.
func Title(text string) { fmt.Printf("\n%s\n", text) }

// Row prints a measured value. An empty want means that nothing is required, so there is no verdict.
func Row(what, got, want string, ok bool) {
	verdict := ""
	if want != "" {
		verdict = "ok"
		if !ok {
			verdict = "MISSED"
		}
	}
	fmt.Printf("  %-66s %22s   %-16s %s\n", what, got, want, verdict)
}

// Tell prints a measured value without a requirement.
func Tell(what, got string) { Row(what, got, "", true) }

// Quantiles are the median, the 99th percentile and the maximum of some durations.
type Quantiles struct{ P50, P99, Most time.Duration }

// QuantilesOf sorts d and returns its quantiles, rounded. They are zero for an empty series.
func QuantilesOf(d []time.Duration) Quantiles {
	if len(d) == 0 {
		return Quantiles{}
	}
	slices.Sort(d)
	at := func(q float64) time.Duration { return Round(d[int(q*float64(len(d)-1))]) }
	return Quantiles{at(0.5), at(0.99), at(1)}
}

// String returns the median and the 99th percentile.
func (q Quantiles) String() string { return fmt.Sprintf("%s / %s", q.P50, q.P99) }

// Round rounds a duration to about three digits.
func Round(d time.Duration) time.Duration {
	unit := time.Microsecond
	for ; d >= 1000*unit; unit *= 10 {
	}
	return d.Round(unit)
}

// Wait pauses, or returns the error of ctx if that ends first.
func Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Until checks a condition at this interval until it holds, for at most limit. An error of it ends the wait.
func Until(ctx context.Context, limit, every time.Duration, ok func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		if err := Wait(ctx, every); err != nil {
			return err
		}
	}
}

// InParallel calls do for 0 to n-1, at most workers at a time. It ends at the first error.
func InParallel(ctx context.Context, n, workers int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	for range workers {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return ctx.Err()
				}
				if err := do(ctx, i); err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// Steadily calls do n times at this rate a second, each call in a new goroutine, and returns how long the
// calls took.
func Steadily(ctx context.Context, n, rate int, do func(context.Context, int) error) (Quantiles, error) {
	took := make([]time.Duration, n)
	group, calling := errgroup.WithContext(ctx)
	began := time.Now()
	for i := range n {
		if Wait(calling, time.Until(began.Add(time.Duration(i)*time.Second/time.Duration(rate)))) != nil {
			break // a call failed, or ctx ended
		}
		group.Go(func() error {
			sent := time.Now()
			err := do(calling, i)
			took[i] = time.Since(sent)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Quantiles{}, err
	}
	return QuantilesOf(took), ctx.Err()
}
