package documents

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// claimEvery is how often the keeper renews its claim, and others look whether it is free.
const claimEvery = claimFor / 6

// keep makes this process the keeper whenever it can be, until ctx ends.
func (d *Documents) keep(ctx context.Context) error {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	takeOver, told := d.opts.TakeOver, ""
	for {
		held, err := d.claim(ctx, takeOver)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// A keeper goes on. Where only this process can't reach Redis, it finds out later that another one has taken over, and
			// does no harm until then.
			told = d.tell(ctx, told, err.Error(), slog.LevelError, "the search index can't be kept at the moment", "error", err)
		case held:
			takeOver = false
			if stop == nil {
				stop = d.start(ctx)
			}
		default:
			if stop != nil {
				stop()
				stop = nil
			}
			told = d.tellKeeper(ctx, told)
		}
		if !pause(ctx, claimEvery) {
			return nil
		}
	}
}

// claim makes the index ready and claims it. One that was not the last one kept is filled then.
func (d *Documents) claim(ctx context.Context, takeOver bool) (bool, error) {
	index, err := d.Store.Ready(ctx)
	if err != nil {
		return false, err
	}
	holder := d.holder
	if d.opts.Exclusive {
		holder = index // its next process goes on at once
	}
	return d.keys.claim(ctx, holder, d.opts.Place, index, takeOver)
}

// tell logs something that stays the same for a while, once.
func (d *Documents) tell(ctx context.Context, told, what string, level slog.Level, line string, attrs ...any) string {
	if what != told {
		d.log.Log(ctx, level, line, attrs...)
	}
	return what
}

// tellKeeper says, once for each of them, who has the index that this process could have.
func (d *Documents) tellKeeper(ctx context.Context, told string) string {
	keeper, err := d.keys.keeper(ctx)
	if err != nil || keeper == told || keeper == "" {
		return told
	}
	return d.tell(ctx, told, keeper, slog.LevelWarn, "another process keeps the search index", "keeper", keeper)
}

// start does what a keeper does, until the answered function is called, or ctx ends.
func (d *Documents) start(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	d.keeping.Store(true)
	d.log.Info("this process keeps the search index", "store", d.opts.Kind)
	var duties sync.WaitGroup
	if d.opts.Exclusive {
		duties.Go(func() {
			if err := d.Work(ctx, d.Handle); err != nil {
				d.log.Error("the workers of the search index ended", "error", err)
			}
		})
	}
	duties.Go(func() { d.repeat(ctx, d.opts.Every, "the search index can't be counted", d.count) })
	duties.Go(func() { d.repeat(ctx, forgetEvery, "old documents can't be deleted", d.forget) })
	duties.Go(func() { d.repeat(ctx, d.opts.Every, "the search index can't be completed", d.complete) })
	return func() {
		cancel()
		duties.Wait()
		d.keeping.Store(false)
	}
}

// repeat does something again and again. An error is logged when it is another one than the last.
func (d *Documents) repeat(ctx context.Context, every time.Duration, trouble string, do func(context.Context) error) {
	last := ""
	for {
		err := do(ctx)
		if ctx.Err() != nil {
			return
		}
		text := ""
		if err != nil {
			if text = err.Error(); text != last {
				d.log.Warn(trouble, "error", err)
			}
		}
		last = text
		if !pause(ctx, every) {
			return
		}
	}
}

// count tells others, and the metrics, how big the index is.
func (d *Documents) count(ctx context.Context) error {
	size, err := d.Store.Size(ctx)
	if err != nil {
		return err
	}
	d.metrics.documents.Set(float64(size.Documents))
	d.metrics.bytes.Set(float64(size.Bytes))
	k, err := d.keys.read(ctx)
	if err != nil {
		return err
	}
	behind := 0.0
	if !k.behind.IsZero() {
		behind = d.opts.Now().Sub(k.behind).Seconds()
	}
	d.metrics.behind.Set(behind)
	return d.keys.tell(ctx, counted{Documents: size.Documents, Bytes: size.Bytes, At: d.opts.Now().UTC().Truncate(time.Millisecond)})
}

const (
	forgetEvery = time.Minute
	forgetBatch = 500
)

// forget deletes what is older than the retention, a batch at a time, leaving as much time to others as it takes.
func (d *Documents) forget(ctx context.Context) error {
	if d.opts.Retention < 0 {
		return nil
	}
	for {
		began := time.Now()
		n, err := d.Store.Forget(ctx, d.oldest(), forgetBatch)
		if err != nil || n < forgetBatch {
			return err
		}
		if !pause(ctx, time.Since(began)) {
			return nil
		}
	}
}

// oldest is when a message may have been accepted to be found still; zero: at any time.
func (d *Documents) oldest() time.Time {
	if d.opts.Retention < 0 {
		return time.Time{}
	}
	return d.opts.Now().Add(-d.opts.Retention).Truncate(time.Second)
}
