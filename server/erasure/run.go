package erasure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox"
)

// Run does the work of erasures, until ctx ends. Every process may run it.
func (e *Erasures) Run(ctx context.Context) error {
	var renewing sync.WaitGroup
	defer renewing.Wait()
	renewing.Go(func() { e.leases.Run(ctx) })
	running := e.DB.Looks().For(runningKey())
	for {
		worked, err := e.work(ctx)
		if err != nil && ctx.Err() == nil {
			e.log.WarnContext(ctx, "erasure failed; retrying", "error", err)
		}
		if n, err := e.DB.Client().ZCard(ctx, runningKey()).Result(); err == nil {
			e.metrics.waiting.Set(float64(n))
		}
		if worked && err == nil {
			continue
		}
		if !running.Pause(ctx, e.opts.Every) {
			return nil
		}
	}
}

// renew makes the leases of erasures longer.
func renew(ctx context.Context, held []*job) (lost []*job, failed error) {
	for _, j := range held {
		err := j.store(ctx, "", j.e.opts.Lease, 0)
		if errors.Is(err, lease.ErrLost) {
			lost = append(lost, j)
		} else if err != nil {
			failed = err
		}
	}
	return lost, failed
}

// work takes an erasure that no process works on, and does it. It reports whether there was one.
func (e *Erasures) work(ctx context.Context) (bool, error) {
	got, err := claimScript.Run(ctx, e.DB.Client(), []string{runningKey()}, claimArgs{
		e.opts.Lease.Milliseconds()})
	if err != nil || got.Word == "NONE" {
		return false, redisdb.Failed(err, "look for erasures")
	}
	j := &job{e: e, held: got.Ends}
	if j.record, err = e.read(ctx, got.ID); err != nil {
		if fault.Is(err, fault.NotFound) { // it was lost
			err = e.DB.Client().ZRem(ctx, runningKey(), got.ID).Err()
		}
		return true, err
	}
	address, err := e.Ring.Open(j.Sealed, recordKey(j.ID))
	if err != nil {
		return true, fmt.Errorf("erasure %s: open the address: %w", j.ID, err)
	}
	traces, err := message.NewTraces(string(address))
	if err != nil {
		return true, fmt.Errorf("erasure %s: %w", j.ID, err)
	}
	j.whom = outbox.Whom{Traces: traces, Account: j.Account}
	return true, j.run(ctx)
}

// job is an erasure that this process works on.
type job struct {
	e    *Erasures
	whom outbox.Whom
	record

	mu   sync.Mutex // for held: the lease is renewed while the record is stored
	held string     // end of the lease, which identifies its holder in Redis
}

// run visits the stores that are left.
func (j *job) run(ctx context.Context) error {
	ctx, release := j.e.leases.Hold(ctx, j)
	defer release()
	for j.Step < len(j.e.Stores) {
		err := j.visit(ctx, j.e.Stores[j.Step])
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			return nil
		}
		if err != nil {
			return errors.Join(err, j.giveBack(ctx, err))
		}
	}
	return j.end(ctx)
}

// visit erases the person from one store.
func (j *job) visit(ctx context.Context, p Store) error {
	if p.Here != nil {
		switch err := p.Here(ctx); {
		case fault.Is(err, fault.NotFound):
			return j.next(ctx)
		case err != nil:
			return err
		}
	}
	j.State, j.Place = api.ErasureRunning, p.Name
	if err := j.save(ctx, j.e.opts.Lease, 0); err != nil {
		return err
	}
	tally := func(store string, n int) error { return j.tally(ctx, store, n) }
	if err := p.Erase(ctx, j.whom, tally); err != nil {
		return err
	}
	return j.next(ctx)
}

// next goes on to the next store.
func (j *job) next(ctx context.Context) error {
	j.Step++
	j.Trouble = ""
	return j.save(ctx, j.e.opts.Lease, 0)
}

// tally counts what is about to be erased, and stores the counts: after a crash it can't be found again.
func (j *job) tally(ctx context.Context, store string, n int) error {
	if j.Counts == nil {
		j.Counts = map[string]int{}
	}
	j.Counts[store] += n
	j.e.metrics.erased.WithLabelValues(store).Add(float64(n))
	if n == 0 {
		return ctx.Err()
	}
	return j.save(ctx, j.e.opts.Lease, 0)
}

// giveBack lets any process continue after a while.
func (j *job) giveBack(ctx context.Context, why error) error {
	stopping := ctx.Err() != nil
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	again := j.e.opts.Again
	if stopping {
		again = 0
	} else {
		j.Trouble = j.whom.Cover(why.Error())
	}
	if err := j.save(ctx, again, 0); !errors.Is(err, lease.ErrLost) {
		return err
	}
	return nil
}

// end writes the receipt.
func (j *job) end(ctx context.Context) error {
	now := j.e.opts.Now().UTC().Truncate(time.Second)
	j.State, j.Place, j.Ended, j.Remaining = api.ErasureDone, "", &now, j.e.Remaining(j.Account)
	if err := j.save(ctx, 0, keptFor); err != nil {
		return err
	}
	j.e.metrics.done.Inc()
	j.e.log.InfoContext(ctx, "a person was erased", "erasure", j.ID, "account", j.Account, "places", j.Counts)
	return nil
}

// save stores the record, renews the lease, and with keep ends it. ErrLost: another process has the erasure.
func (j *job) save(ctx context.Context, length, keep time.Duration) error {
	if j.Sealed = ""; keep == 0 { // always under the secret of today
		j.Sealed = j.e.Ring.Seal([]byte(j.whom.Address()), recordKey(j.ID))
	}
	text, err := json.Marshal(j.record)
	if err != nil {
		return err
	}
	return j.store(ctx, string(text), length, keep)
}

// store is save for a record; "": only the lease is renewed.
func (j *job) store(ctx context.Context, text string, length, keep time.Duration) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	answer, err := saveScript.RunReplicated(ctx, j.e.DB, []string{runningKey(), recordKey(j.ID), ofKey(j.Of)},
		saveArgs{ID: j.ID, Held: j.held, Record: text, Lease: length.Milliseconds(), Keep: int64(keep.Seconds())})
	switch {
	case err != nil:
		return redisdb.Failed(err, "store erasure %s", j.ID)
	case answer.Word == "LOST":
		return lease.ErrLost
	}
	j.held = answer.Ends
	return nil
}
