package search

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

// claimEvery is the interval at which the indexer renews its claim and others try to take it.
const claimEvery = claimFor / 6

// keep claims the index whenever possible, until ctx ends.
func (d *Documents) keep(ctx context.Context) error {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	takeOver, logged := d.opts.TakeOver, ""
	for {
		held, err := d.claim(ctx, takeOver)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// An indexer continues. If only this process cannot reach Redis, it learns of a new indexer later.
			// Until then it does no harm.
			logged = d.logOnce(ctx, logged, err.Error(), slog.LevelError, "the search index can't be kept at the moment",
				"error", err)
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
			logged = d.logIndexer(ctx, logged)
		}
		if !redisdb.Pause(ctx, claimEvery) {
			return nil
		}
	}
}

// claim prepares the index and claims it. An index other than the last one kept is filled next.
func (d *Documents) claim(ctx context.Context, takeOver bool) (bool, error) {
	index, err := d.Store.Ready(ctx)
	if err != nil {
		return false, err
	}
	holder := d.holder
	if d.opts.Exclusive {
		holder = index // the next process of this index takes over immediately
	}
	return d.keys.claim(ctx, holder, d.opts.Place, index, takeOver)
}

// logOnce logs a lasting condition once, if it is not logged yet.
func (d *Documents) logOnce(ctx context.Context, logged, what string, level slog.Level, line string,
	attrs ...any) string {
	if what != logged {
		d.log.Log(ctx, level, line, attrs...)
	}
	return what
}

// logIndexer logs each indexer of this process's index once.
func (d *Documents) logIndexer(ctx context.Context, logged string) string {
	indexer, err := d.keys.indexer(ctx)
	if err != nil || indexer == logged || indexer == "" {
		return logged
	}
	return d.logOnce(ctx, logged, indexer, slog.LevelWarn, "another process keeps the search index", "indexer", indexer)
}

// start starts the indexer's work. It ends with ctx or when stop is called.
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
	always := func(every time.Duration) func() bool { return func() bool { return redisdb.Pause(ctx, every) } }
	missing := d.DB.Looks().For(behindKey(), fillingKey(), rebuildKey())
	duties.Go(func() { d.repeat(ctx, always(d.opts.Every), "the search index can't be counted", d.count) })
	duties.Go(func() { d.repeat(ctx, always(forgetEvery), "old documents can't be deleted", d.forget) })
	duties.Go(func() {
		every := func() bool { return missing.Pause(ctx, d.opts.Every) }
		d.repeat(ctx, every, "the search index can't be completed", d.complete)
	})
	return func() {
		cancel()
		duties.Wait()
		d.keeping.Store(false)
	}
}

// repeat runs a function repeatedly, as long as pause reports true. It logs an error if it differs from the
// last one.
func (d *Documents) repeat(ctx context.Context, pause func() bool, trouble string,
	do func(context.Context) error) {
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
		if !pause() {
			return
		}
	}
}

// recount is how long the stored size is good if nothing was added.
const recount = 10 * time.Second

// count stores the size of the index for other processes and metrics.
func (d *Documents) count(ctx context.Context) error {
	size, err := d.Store.Size(ctx)
	if err != nil {
		return err
	}
	d.metrics.documents.Set(float64(size.Documents))
	d.metrics.bytes.Set(float64(size.Bytes))
	now := counted{Documents: size.Documents, Bytes: size.Bytes,
		At: d.opts.Now().UTC().Truncate(time.Millisecond)}
	same := d.noted.Documents == now.Documents && d.noted.Bytes == now.Bytes
	if same && now.At.Sub(d.noted.At).Abs() < recount {
		return nil
	}
	if err := d.keys.noteSize(ctx, now); err != nil {
		return err
	}
	d.noted = now
	return nil
}

const (
	forgetEvery = time.Minute
	forgetBatch = 500
)

// forget deletes documents beyond the retention in batches. It pauses as long as it works.
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
		if !redisdb.Pause(ctx, time.Since(began)) {
			return nil
		}
	}
}

// oldest returns the earliest acceptance time that the retention allows, or zero.
func (d *Documents) oldest() time.Time {
	if d.opts.Retention < 0 {
		return time.Time{}
	}
	return d.opts.Now().Add(-d.opts.Retention).Truncate(time.Second)
}
