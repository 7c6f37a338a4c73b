package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/bench/rig"
)

// options are the flags of a run.
type options struct {
	seed       uint64
	length     time.Duration // length of the chaos; the drain comes after
	messages   int
	apis       int
	workers    int
	receivers  int
	people     int // whom campaigns go to
	campaigns  int // how many are sent at most
	readers    int // digest readers
	digests    int // events of digests
	partitions int
	cluster    bool // Redis is a Cluster
	lease      time.Duration
	calm       float64       // multiplies the times without trouble
	drain      time.Duration // without faults and progress for this long, the run has ended
	keep       bool          // the directory with the logs stays in any case
	progress   time.Duration // how often a line of progress is written
}

// errBroken means that a promise was broken. The table shows which.
var errBroken = errors.New("a promise was broken")

// run makes faults, ends them, waits until nothing moves, and judges. It writes progress and table to w.
func run(ctx context.Context, w io.Writer, o options) error {
	fmt.Fprintf(w, "chaos for %s with seed %d: %d messages, %d campaigns to %d people, %d events of digests to %d "+
		"readers, %d api and %d worker processes, lease %s\n",
		o.length, o.seed, o.messages, o.campaigns, o.people, o.digests, o.readers, o.apis, o.workers, o.lease)
	messages := o.messages
	if messages > 0 {
		messages += o.workers * calmMessages
	}
	l := newLedger(messages, o.people, o.campaigns)
	l.digests = newDigests(o.readers, o.digests)
	h := &testbed{o: o, ledger: l, relays: newRelays(o.seed, l)}
	defer h.Close()
	if err := h.open(ctx); err != nil {
		return err
	}
	l.began = time.Now()
	r := &round{h: h, w: w, clients: newClients(h)}
	if err := r.play(ctx); err != nil {
		fmt.Fprintf(w, "the logs are in %s\n", h.dir)
		return err
	}
	if err := r.conclude(ctx); err != nil || o.keep {
		fmt.Fprintf(w, "the logs are in %s\n", h.dir)
		return err
	}
	h.Close()
	return os.RemoveAll(h.dir)
}

// round is one run.
type round struct {
	h        *testbed
	w        io.Writer
	clients  *clients
	watching sync.WaitGroup // for kills
	drained  error          // why not everything came to its end
}

// play makes the chaos and waits for its end.
func (r *round) play(ctx context.Context) error {
	h, o := r.h, r.h.o
	background, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer r.watching.Wait()
	defer beside.Wait()
	defer stop()
	beside.Go(func() { h.redis.follow(background) })
	beside.Go(func() { r.report(background) })

	weather, clear := context.WithTimeout(ctx, o.length)
	defer clear()
	var storming, operating sync.WaitGroup
	storming.Go(func() { storm(weather, o, h.ledger, h.targets(background, &r.watching)) })
	operating.Go(func() { r.clients.operate(weather) })
	r.clients.notify(ctx, weather)
	r.clients.campaigning(ctx, weather)
	r.clients.load(ctx, 0, o.messages, o.length)
	storming.Wait()
	operating.Wait()
	fmt.Fprintf(r.w, "%s  the storm is over\n", h.ledger.progress())
	if err := h.heal(ctx); err != nil {
		return err
	}
	r.calm(ctx)
	return ctx.Err() // interrupted: there is nothing to judge yet
}

// calm waits until everything has ended, with some kills in between. The table shows what did not end.
func (r *round) calm(ctx context.Context) {
	r.drained = errors.Join(
		r.until(ctx, "every client is answered, and every campaign has ended", done(&r.clients.all)),
		r.until(ctx, "the outbox is empty", r.empty),
		r.until(ctx, "nobody of a campaign is under way", r.settled),
		r.until(ctx, "every event of digests is told", r.told),
		r.killInCalm(ctx),
		r.until(ctx, "every client is answered again", done(&r.clients.all)),
		r.until(ctx, "the outbox is empty again", r.empty),
		r.until(ctx, "all events are read, and received", r.received),
		r.until(ctx, "every kill is accounted for", done(&r.watching)),
	)
}

// done returns a condition: whether the whole group has ended.
func done(group *sync.WaitGroup) func(context.Context) bool {
	ended := make(chan struct{})
	go func() { group.Wait(); close(ended) }()
	return func(context.Context) bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
}

// until waits for a condition, as long as anything still moves.
func (r *round) until(ctx context.Context, what string, ok func(context.Context) bool) error {
	began := time.Now()
	moved, last := began, r.h.ledger.moved()
	for !ok(ctx) {
		if now := r.h.ledger.moved(); now != last {
			moved, last = time.Now(), now
		}
		if time.Since(moved) > r.h.o.drain {
			return fmt.Errorf("nothing moved for %s, and not yet: %s", r.h.o.drain, what)
		}
		if err := rig.Wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.w, "%s  %s, after another %s\n", r.h.ledger.progress(), what,
		time.Since(began).Round(time.Millisecond))
	return nil
}

// empty reports whether the outbox holds no live message.
func (r *round) empty(ctx context.Context) bool {
	for _, state := range []api.State{api.Waiting, api.Scheduled, api.Delayed, api.Active, api.Paused} {
		page, err := api.ListOutbox.Do(ctx, r.h.apis[0].client, api.OutboxQuery{State: state, PageSize: 1})
		if err != nil || page.Total > 0 {
			return false
		}
	}
	return true
}

// received reports whether every endpoint has every event.
func (r *round) received(ctx context.Context) bool {
	if r.h.redis.catchUp(ctx) != nil {
		return false
	}
	l := r.h.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.order {
		if len(f.received) < len(r.h.receivers) {
			return false
		}
	}
	return true
}

// report writes a line of progress at intervals.
func (r *round) report(ctx context.Context) {
	for rig.Wait(ctx, r.h.o.progress) == nil {
		fmt.Fprintln(r.w, r.h.ledger.progress())
	}
}

// conclude writes the table, and the stories of its offenders.
func (r *round) conclude(ctx context.Context) error {
	h, l := r.h, r.h.ledger
	r.ask(ctx)
	r.askMailings(ctx)
	r.askDigests(ctx)
	var endpoints []string
	var forged int64
	for _, receiver := range h.receivers {
		endpoints = append(endpoints, receiver.name)
		forged += receiver.forged.Load()
	}
	v := judge(l, endpoints)
	l.mu.Lock()
	rec := recoveries(l.kills)
	deaths, oddities := l.deaths, l.oddities
	l.mu.Unlock()
	t := &table{w: r.w, ok: true}
	t.write(v, l, rec, forged)
	t.complain("Broken promises of campaigns", v.mailed.faults)
	t.complain("Broken promises of digests", v.digested.faults)
	if r.drained != nil {
		t.complain("Not everything ended", []string{r.drained.Error()})
	}
	t.complain("Processes that ended by themselves", deaths)
	t.complain("Alarms in the logs", h.alarms())
	t.complain("Unexplained", oddities)
	fmt.Fprintf(r.w, "\nseed %d, %s in all\n", h.o.seed, time.Since(l.began).Round(time.Second))
	if t.ok {
		return nil
	}
	h.explain(ctx, r.w, v)
	for _, line := range h.explainDigests(v.digested) {
		fmt.Fprintln(r.w, line)
	}
	for _, k := range rec.stuck {
		fmt.Fprintf(r.w, "\n%s killed at %s: never moved on: %v\n", k.worker, l.since(k.at), k.pending)
	}
	return errBroken
}

// ask asks Postroom which attempts were in doubt, of messages that were delivered more than once, or that
// did not end as sent. A worker that died after the dot leaves no event, only a line in the email log or the
// dead letter.
func (r *round) ask(ctx context.Context) {
	l := r.h.ledger
	l.mu.Lock()
	ended := map[string]bool{} // otherwise than sent
	for _, f := range l.order {
		if lastWord(f.kind) && f.kind != event.MessageSent {
			ended[f.queueID] = true
		}
	}
	var suspects []*story
	for _, s := range l.stories {
		if s == nil || len(s.queueIDs) == 0 {
			continue
		}
		more := ended[s.queueIDs[0]] && len(s.copies) > 0
		for _, copies := range s.copies {
			more = more || len(copies) > 1
		}
		if more {
			suspects = append(suspects, s)
		}
	}
	l.mu.Unlock()
	for _, s := range suspects {
		n := r.doubts(ctx, s.queueIDs[0])
		l.mu.Lock()
		s.doubts = n
		l.mu.Unlock()
	}
}

// doubts returns how many attempts of a message were in doubt; -1 if Postroom no longer knows.
func (r *round) doubts(ctx context.Context, id string) int {
	letter, err := api.GetDeadLetter.Do(ctx, r.h.apis[0].client, id)
	n, attempts := letter.InDoubt, letter.Log
	if err != nil {
		var m api.LoggedMessage
		if m, err = api.GetLoggedMessage.Do(ctx, r.h.apis[0].client, id); err != nil {
			return -1
		}
		n, attempts = m.InDoubt, m.Log
	}
	attempts = slices.DeleteFunc(attempts, func(a api.Attempt) bool { return !a.InDoubt })
	return max(n, len(attempts))
}
