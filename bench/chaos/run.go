package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/event"
)

// options are the size and the weather of a run.
type options struct {
	seed       uint64
	length     time.Duration // of the chaos; the drain comes after
	messages   int
	apis       int
	workers    int
	receivers  int
	partitions int
	lease      time.Duration
	calm       float64 // multiplies the times without trouble
	// how long nothing may move, once nothing is wrong any more, before that is taken for the end
	drain    time.Duration
	keep     bool          // the directory with the logs stays in any case
	progress time.Duration // how often a line of progress is written
}

// errBroken says that a promise was broken; the table has told which.
var errBroken = errors.New("a promise was broken")

// run makes chaos, heals everything, waits until all is quiet, and judges. It writes progress and table to w.
func run(ctx context.Context, w io.Writer, o options) error {
	fmt.Fprintf(w, "chaos for %s with seed %d: %d messages, %d api and %d worker processes, lease %s\n",
		o.length, o.seed, o.messages, o.apis, o.workers, o.lease)
	l := newLedger(o.messages + o.workers*calmMessages)
	h, err := open(ctx, o, l)
	if err != nil {
		return err
	}
	defer h.Close()
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
	h        *house
	w        io.Writer
	clients  *clients
	watching sync.WaitGroup // of kills
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
	storming.Go(func() { storm(weather, o, h.ledger, h.places(background, &r.watching)) })
	operating.Go(func() { r.clients.operate(weather) })
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

// calm waits until everything has come to its end, with some kills in between. What did not is for the table
// to tell.
func (r *round) calm(ctx context.Context) {
	r.drained = errors.Join(
		r.until(ctx, "every client is answered", done(&r.clients.all)),
		r.until(ctx, "the outbox is empty", r.empty),
		r.killInCalm(ctx),
		r.until(ctx, "every client is answered again", done(&r.clients.all)),
		r.until(ctx, "the outbox is empty again", r.empty),
		r.until(ctx, "all events are read, and received", r.received),
		r.until(ctx, "every kill is accounted for", done(&r.watching)),
	)
}

// done makes a question of a group: whether all of it has ended.
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

// until waits for something, for as long as anything at all still moves.
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
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	fmt.Fprintf(r.w, "%s  %s, after another %s\n", r.h.ledger.progress(), what,
		time.Since(began).Round(time.Millisecond))
	return nil
}

// empty says whether nothing waits, is due, or is on its way.
func (r *round) empty(ctx context.Context) bool {
	for _, state := range []api.State{api.Waiting, api.Delayed, api.Active, api.Paused} {
		page, err := api.ListOutbox.Do(ctx, r.h.apis[0].client, api.OutboxQuery{State: state, PageSize: 1})
		if err != nil || page.Total > 0 {
			return false
		}
	}
	return true
}

// received says whether every event is at every endpoint.
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

// report writes a line of progress now and then.
func (r *round) report(ctx context.Context) {
	for wait(ctx, r.h.o.progress) == nil {
		fmt.Fprintln(r.w, r.h.ledger.progress())
	}
}

// conclude writes the table, and explains what is wrong in it.
func (r *round) conclude(ctx context.Context) error {
	h, l := r.h, r.h.ledger
	r.ask(ctx)
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
	if r.drained != nil {
		t.complain("Not everything came to its end", []string{r.drained.Error()})
	}
	t.complain("Processes that ended by themselves", deaths)
	t.complain("Alarms in the logs", h.alarms())
	t.complain("Nobody can explain", oddities)
	fmt.Fprintf(r.w, "\nseed %d, %s in all\n", h.o.seed, time.Since(l.began).Round(time.Second))
	if t.ok {
		return nil
	}
	h.explain(ctx, r.w, v)
	for _, k := range rec.stuck {
		fmt.Fprintf(r.w, "\n%s killed at %s: never moved on: %v\n", k.worker, l.since(k.at), k.pending)
	}
	return errBroken
}

// ask asks Postroom which attempts were in doubt, of messages that were delivered though their last word is
// another, or more than once. A worker that died after the dot leaves no event, only its line in the email
// log or the dead letter.
func (r *round) ask(ctx context.Context) {
	l := r.h.ledger
	l.mu.Lock()
	ended := map[string]bool{} // told something else than sent
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

// doubts is how many attempts of a message were in doubt; -1 when Postroom no longer knows.
func (r *round) doubts(ctx context.Context, id string) int {
	for _, path := range []string{"/v1/dead-letters/", "/v1/messages/"} {
		status, body, _ := strings.Cut(r.h.ask(ctx, path+id, 1<<20), "{")
		var m struct {
			InDoubt int `json:"inDoubt"`
			Log     []api.Attempt
		}
		if !strings.HasPrefix(status, "200") || json.Unmarshal([]byte("{"+body), &m) != nil {
			continue
		}
		n := 0
		for _, a := range m.Log {
			if a.InDoubt {
				n++
			}
		}
		return max(n, m.InDoubt)
	}
	return -1
}
