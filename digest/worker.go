package digest

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	lookEvery  = time.Second      // between two looks for due schedules
	mostClaims = 6                // from each shard at a time: about 100 in all
	giveUp     = 30 * time.Second // for the steps of one run; its lease is renewed no longer
)

// worker sends due digests.
type worker struct {
	*Runs
	leases *lease.Set[held]
	// decide is Options.decide. The test of planted errors replaces it.
	decide func(r *recipient, schedule string, kinds map[string]*api.DigestKind, since, now time.Time) planned
}

// run works until ctx ends, and then finishes its current work.
func (w *worker) run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { w.follow(ctx) })
	wg.Go(func() { w.measure(ctx) })
	if w.opts.Workers > 0 {
		work, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop()
		wg.Go(func() { w.leases.Run(work) })
		w.claim(ctx, work)
		stop()
	}
	wg.Wait()
	return nil
}

// claim passes due schedules to workers, until ctx ends. Work on them is finished in work.
func (w *worker) claim(ctx, work context.Context) {
	due := make(chan job)
	var workers sync.WaitGroup
	for range w.opts.Workers {
		workers.Go(func() {
			for j := range due {
				w.attend(work, j)
			}
		})
	}
	defer workers.Wait()
	defer close(due)
	planned := w.DB.Looks().For(shardKeys()...)
	for ctx.Err() == nil {
		found, err := w.look(ctx)
		if err != nil {
			w.trouble(ctx, "claim digests", err)
		}
		for _, j := range found {
			due <- j
		}
		if len(found) == 0 {
			planned.Pause(ctx, lookEvery)
		}
	}
}

func (w *worker) trouble(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.log.WarnContext(ctx, "digests wait", "step", what, "error", err)
	}
}

// job is what a worker does next.
type job struct {
	held
	reader *recipient // as it was at a time; nil if a run has begun, or it was not read
	at     time.Time
}

// freshFor is how long a recipient that was read counts as current. Scripts refuse decisions about a
// recipient that was changed since.
const freshFor = time.Second

// look claims due schedules in all shards, in one round trip, unless the queue is paused. Another round trip
// reads their recipients.
func (w *worker) look(ctx context.Context) (found []job, _ error) {
	// an error may be of one node of a Cluster
	if any, err := w.DB.Looks().Any(ctx, shardKeys()...); err == nil && !any {
		return nil, nil
	}
	resting, err := w.Resting(ctx)
	if err != nil || resting {
		return nil, err
	}
	now := w.opts.Now()
	pipe := w.DB.Pipeline()
	replies := make([]*redisdb.Reply[[]claimed], shards)
	for shard := range shards {
		replies[shard] = claimScript.Add(pipe, []string{dueKey(shard), openKey(shard), fencesKey(shard)},
			claimArgs{Now: now, Lease: now.Add(w.opts.Lease), Most: mostClaims})
	}
	sent := pipe.Exec(ctx)
	for shard, reply := range replies {
		rows, err := reply.Read()
		if err != nil {
			sent = err
			continue // a Cluster node may be unavailable
		}
		for _, row := range rows {
			h := held{shard, row.Member, row.Fence}
			w.hold(context.WithoutCancel(ctx), h) // until a worker has it
			found = append(found, job{held: h})
		}
	}
	w.readAll(ctx, found)
	return found, redisdb.Failed(sent, "claim digests")
}

// readAll reads the recipients of claimed schedules. A recipient that can't be read now is read later.
func (w *worker) readAll(ctx context.Context, found []job) {
	now, pipe := time.Now(), w.DB.Client().Pipeline()
	replies := make([]*redis.MapStringStringCmd, len(found))
	keys := make([]readerKey, len(found))
	for i, j := range found {
		if e, _, ok := j.entry(); ok && j.run() == "" {
			keys[i] = e.readerKey
			replies[i] = pipe.HGetAll(ctx, e.key())
		}
	}
	if pipe.Len() == 0 {
		return
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, reply := range replies {
		if reply != nil && reply.Err() == nil {
			found[i].reader, found[i].at = readRecipient(keys[i], reply.Val()), now
		}
	}
}

// attend makes the next steps for a claimed schedule.
func (w *worker) attend(ctx context.Context, j job) {
	ctx, cancel := context.WithTimeout(ctx, giveUp) // its time begins now: it may have waited for a worker
	defer cancel()
	defer w.hold(ctx, j.held)()
	if err := w.work(ctx, j); err != nil {
		w.trouble(ctx, "make a digest", err)
	}
}

// hold renews a lease until it is released, or ctx ends. A step that does not end in time keeps nothing from
// others: the lease ends, and what the step does later has a stale fence.
func (w *worker) hold(ctx context.Context, h held) (release func()) {
	_, release = w.leases.Hold(ctx, h)
	context.AfterFunc(ctx, release)
	return release
}

// renew makes leases longer. One that is another's has another fence, and stays so.
func (b *base) renew(ctx context.Context, all []held) ([]held, error) {
	byShard := map[int][]string{}
	for _, h := range all {
		byShard[h.shard] = append(byShard[h.shard], h.member, h.fence)
	}
	pipe := b.DB.Pipeline()
	for shard, all := range byShard {
		renewScript.Add(pipe, []string{openKey(shard), fencesKey(shard)},
			renewArgs{Lease: b.opts.Now().Add(b.opts.Lease), Held: all})
	}
	return nil, pipe.Exec(ctx)
}

// work makes the next steps of what a worker holds.
func (w *worker) work(ctx context.Context, j job) error {
	if id := j.run(); id != "" {
		return w.resume(ctx, j.held, id)
	}
	e, since, ok := j.entry()
	if !ok {
		_, err := w.replan(ctx, j.held, &recipient{}, "", time.Time{}) // nothing can be made of it
		return err
	}
	if time.Since(j.at) > freshFor {
		j.reader = nil
	}
	for range mostTries {
		if j.reader == nil {
			r, err := w.read(ctx, e.readerKey)
			if err != nil {
				return err
			}
			j.reader = r
		}
		again, err := w.start(ctx, j.held, e, j.reader, since)
		if err != nil || !again {
			return err
		}
		j.reader = nil
	}
	return nil // its lease ends, and somebody tries again
}

// start begins the run of an entry of due, if it is still due. again is true if the recipient was changed in
// between.
func (w *worker) start(ctx context.Context, h held, e entry, r *recipient, since time.Time) (again bool,
	_ error) {
	kinds, err := w.kinds.of(ctx, e.account)
	if err != nil {
		return false, err
	}
	now := w.opts.Now()
	plan := w.decide(r, e.schedule, kinds, since, now)
	if len(plan.categories) == 0 && plan.later.IsZero() && len(r.categories) > 0 {
		// Its schedule has changed, for example with its kind, or its address came: all is planned again.
		if r, err = w.change(ctx, e.readerKey, nil); err != nil {
			return false, err
		}
	}
	if len(plan.categories) == 0 {
		return w.replan(ctx, h, r, e.schedule, plan.later)
	}
	return w.open(ctx, h, r, plan, now)
}

// replan moves an entry to another time, or removes it.
func (w *worker) replan(ctx context.Context, h held, r *recipient, schedule string, later time.Time) (
	again bool, _ error) {
	member := ""
	if !later.IsZero() {
		member = entry{r.readerKey, schedule}.member()
	}
	answer, err := planScript.RunReplicated(ctx, w.DB, []string{r.key(), dueKey(h.shard), openKey(h.shard),
		fencesKey(h.shard)}, planArgs{Held: h.member, Fence: h.fence, Version: r.version,
		Member: member, Time: later})
	return answer.Word == "CHANGED", redisdb.Failed(err, "plan the digest of %s", r.readerKey)
}
