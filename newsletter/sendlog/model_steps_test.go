package sendlog

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
)

// Steps of the actors of the model, and the faults that come between them.

// actor is one thread of a process. It runs from one step to the next, when the world lets it.
type actor struct {
	*world
	name   string
	proc   *proc
	yield  func(struct{}) bool
	next   func() (struct{}, bool)
	stop   func()
	resume int // it stalls until this step
}

// proc is one process; nil: what never crashes.
type proc struct {
	scan   *scan
	lanes  int // of its batch, the lanes that send
	actors []*actor
}

type killed struct{}

// begin adds an actor.
func (w *world) begin(p *proc, name string, run func(*actor)) *actor {
	a := &actor{world: w, name: name, proc: p}
	a.next, a.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if gone := recover(); gone != nil && gone != (killed{}) {
				panic(gone)
			}
		}()
		a.yield = yield
		run(a)
	})
	w.actors = append(w.actors, a)
	if p != nil {
		p.actors = append(p.actors, a)
	}
	return a
}

// step lets others continue. Here an actor may crash.
func (a *actor) step() {
	if !a.yield(struct{}{}) {
		panic(killed{})
	}
}

// rests lets others take some steps.
func (a *actor) rests(steps int) {
	a.resume = a.tick + steps
	a.step()
}

var errLost = errors.New("no answer of Redis")

// call makes a call to Redis, between two steps. The call may fail, with or without an effect, be made
// twice, or come once more much later.
func call[T any](a *actor, do func() (T, error)) (T, error) {
	a.step()
	fate := a.chance.IntN(60)
	if a.quiet {
		fate = -1
	}
	switch fate {
	case 0:
		var none T
		return none, errLost
	case 1:
		none, _ := do()
		return none, errLost
	case 2:
		_, _ = do()
	case 3:
		a.ghosts = append(a.ghosts, func() { _, _ = do() })
	}
	answer, err := do()
	if err != nil {
		a.fail("%s: %v", a.name, err)
	}
	a.step()
	return answer, err
}

// persist repeats a call until it succeeds.
func persist[T any](a *actor, do func() (T, error)) T {
	for {
		if answer, err := call(a, do); err == nil || a.wrong != nil {
			return answer
		}
	}
}

// turn lets one actor take a step, or has a fault come.
func (w *world) turn() {
	w.tick++
	if !w.quiet {
		switch w.chance.IntN(300) {
		case 0:
			w.crash()
		case 1, 2:
			w.expire()
		case 3, 4:
			w.haunt()
		case 5, 6, 7, 8, 9, 10, 11, 12:
			w.stall()
		}
	}
	a := w.actors[w.chance.IntN(len(w.actors))]
	if a.resume > w.tick {
		return
	}
	if _, more := a.next(); !more {
		w.actors = slices.DeleteFunc(w.actors, func(b *actor) bool { return a == b })
	}
}

// play runs a history.
func (w *world) play() {
	defer w.close()
	for range chaos {
		if w.turn(); w.over || w.wrong != nil {
			break
		}
	}
	w.quiet = true
	for range calm {
		if w.wrong != nil {
			return
		}
		if w.over {
			w.judge()
			return
		}
		w.turn()
		if w.tick%200 == 0 {
			w.expireDead()
		}
	}
	w.fail("the run does not end")
}

// close ends all actors.
func (w *world) close() {
	for _, a := range w.actors {
		a.stop()
	}
}

// crash kills a process, and starts another instead.
func (w *world) crash() {
	n := w.chance.IntN(len(w.procs))
	w.note("process %d crashes", n)
	if s := w.procs[n].scan.batch; s != nil {
		w.interrupts(s.number)
	}
	w.crashes++
	for _, a := range w.procs[n].actors {
		a.stop()
	}
	w.actors = slices.DeleteFunc(w.actors, func(a *actor) bool { return a.proc == w.procs[n] })
	w.procs[n] = w.start()
}

// stall has an actor stand still for a while, preferably one that sends. The lease of its batch may end.
func (w *world) stall() {
	all := slices.DeleteFunc(slices.Clone(w.actors), func(a *actor) bool { return a.name != "lane" })
	if len(all) == 0 {
		all = w.actors
	}
	a := all[w.chance.IntN(len(all))]
	a.resume = w.tick + 100 + w.chance.IntN(400)
	if a.proc != nil && a.proc.scan.batch != nil && w.chance.IntN(4) > 0 {
		w.lose(a.proc.scan.batch.number)
	}
}

// expire makes the lease of some batch end.
func (w *world) expire() {
	key := logKey(w.run, w.chunk) + ":batches"
	all, err := w.db.Client().ZRange(w.ctx, key, 0, -1).Result()
	if err != nil || len(all) == 0 {
		return
	}
	slices.Sort(all) // their order is real time's
	w.lose(all[w.chance.IntN(len(all))])
}

func (w *world) lose(number string) {
	w.note("the lease of batch %s ends", number)
	w.epoch[number]++
	w.interrupts(number)
	w.must(w.end(w.ctx, w.run, w.chunk, number))
}

// expireDead makes the leases of all batches end that no one has.
func (w *world) expireDead() {
	live := map[string]bool{}
	for _, p := range w.procs {
		if p.scan.batch != nil {
			live[p.scan.batch.number] = true
		}
	}
	all, err := w.db.Client().ZRange(w.ctx, logKey(w.run, w.chunk)+":batches", 0, -1).Result()
	w.must(err)
	for _, number := range all {
		if !live[number] {
			w.must(w.end(w.ctx, w.run, w.chunk, number))
		}
	}
}

// haunt repeats a call of long ago.
func (w *world) haunt() {
	if len(w.ghosts) > 0 {
		n := w.chance.IntN(len(w.ghosts))
		w.note("an old call arrives once more")
		w.risk++ // it may be a mark
		w.ghosts[n]()
		w.ghosts = slices.Delete(w.ghosts, n, n+1)
	}
}

// between has a step come between the commands of a pipeline: it isn't a transaction.
type between struct{}

type actorKey struct{}

// DialHook implements redis.Hook.
func (between) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (between) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (between) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		a, _ := ctx.Value(actorKey{}).(*actor)
		if a == nil || cmds[0].Name() == "multi" {
			return next(ctx, cmds)
		}
		for _, cmd := range cmds {
			if err := next(ctx, []redis.Cmder{cmd}); err != nil {
				return err
			}
			a.step()
		}
		return nil
	}
}

// splitting opens an empty Redis for worlds.
func splitting(t *testing.T) *redisdb.DB {
	db := testredis.New(t)
	db.Client().AddHook(between{})
	return db
}

// split returns a context in which the pipelines of an actor are split.
func (a *actor) split() context.Context { return context.WithValue(a.ctx, actorKey{}, a) }
