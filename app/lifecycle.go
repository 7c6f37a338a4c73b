package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// runner is a long-running part: it runs until its context ends.
type runner struct {
	name    string
	run     func(context.Context) error
	follows bool // it follows a stream, and ends with its last read: up to half a second after its context
}

// lifecycle starts parts in the order they were added and stops them in reverse order, one at a time. Parts
// that follow streams, and were added one after the other, are stopped together.
type lifecycle struct {
	log     *slog.Logger
	runners []runner
	stops   []stop
}

// stop closes a part.
type stop struct {
	name string
	do   func() error
}

// onRun adds a long-running part. Parts added later are stopped earlier.
func (l *lifecycle) onRun(name string, run func(context.Context) error) {
	l.runners = append(l.runners, runner{name: name, run: run})
}

// onFollow adds a long-running part that follows a stream. Such parts, added one after the other, are stopped
// together: they must not need each other.
func (l *lifecycle) onFollow(name string, run func(context.Context) error) {
	l.runners = append(l.runners, runner{name: name, run: run, follows: true})
}

// onStop adds the closing of a part. It happens after everything that runs has ended.
func (l *lifecycle) onStop(name string, do func() error) { l.stops = append(l.stops, stop{name, do}) }

// run runs all parts until ctx ends or one of them fails. Then it stops them, the last started first.
func (l *lifecycle) run(ctx context.Context) error {
	failed := make(chan error, len(l.runners))
	running := make([]*part, len(l.runners))
	for i, r := range l.runners {
		running[i] = start(context.WithoutCancel(ctx), r, failed)
	}
	var err error
	select {
	case <-ctx.Done():
		l.log.Info("stopping")
	case err = <-failed:
		l.log.Error("a part failed; stopping", "error", err)
	}
	for i := len(running) - 1; i >= 0; i-- {
		began := time.Now()
		for j := i; j >= 0 && l.runners[j].follows; j-- {
			running[j].cancel()
		}
		err = errors.Join(err, running[i].stop())
		l.log.Debug("part stopped", "part", l.runners[i].name, "took", time.Since(began))
	}
	return err
}

// close runs all stops, the last added first.
func (l *lifecycle) close() error {
	var errs error
	for i := len(l.stops) - 1; i >= 0; i-- {
		if err := l.stops[i].do(); err != nil {
			errs = errors.Join(errs, fmt.Errorf("close %s: %w", l.stops[i].name, err))
		}
	}
	l.stops = nil
	return errs
}

// part is a started runner.
type part struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error
}

func start(ctx context.Context, r runner, failed chan<- error) *part {
	p := &part{}
	ctx, p.cancel = context.WithCancel(ctx)
	p.done.Go(func() {
		err := r.run(ctx)
		switch {
		case ctx.Err() != nil: // it was stopped; stop returns its error, if any
			if err != nil && !errors.Is(err, context.Canceled) {
				p.err = fmt.Errorf("stop %s: %w", r.name, err)
			}
		case err != nil:
			failed <- fmt.Errorf("run %s: %w", r.name, err)
		default:
			failed <- fmt.Errorf("run %s: it ended unexpectedly", r.name)
		}
	})
	return p
}

func (p *part) stop() error {
	p.cancel()
	p.done.Wait()
	return p.err
}
