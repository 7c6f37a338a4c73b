package digest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/digest"
	"github.com/postroom/postroom/internal/testredis"
)

// lossy makes calls of Redis fail: before they are sent, or after Redis did what they ask.
type lossy struct {
	mu    sync.Mutex
	dice  *rand.Rand
	share float64 // of calls that fail; 0: none
}

var errLost = errors.New("read tcp: i/o timeout")

func (l *lossy) fails() (before, after bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.dice.Float64()
	return n < l.share/2, n < l.share
}

func (l *lossy) set(share float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share = share
}

func (l *lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		before, after := l.fails()
		if before {
			cmd.SetErr(errLost)
			return errLost
		}
		err := next(ctx, cmd)
		if after {
			cmd.SetErr(errLost)
			return errLost
		}
		return err
	}
}

func (l *lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		before, after := l.fails()
		var err error
		if !before {
			err = next(ctx, cmds)
		}
		if before || after {
			for _, cmd := range cmds {
				cmd.SetErr(errLost)
			}
			return errLost
		}
		return err
	}
}

// house is two processes on one Redis that loses replies, and what a reader must see of them.
type house struct {
	*bench
	other *bench
	net   *lossy
	dice  *rand.Rand
	given map[string]bool   // entities of events that were answered as waiting or immediate
	tries []api.DigestEvent // of unknown result: they are sent again, under their keys
	n     int
}

func build(t testing.TB, seed uint64) *house {
	t.Helper()
	h := &house{net: &lossy{dice: rand.New(rand.NewPCG(seed, 1))}, dice: rand.New(rand.NewPCG(seed, 2)),
		given: map[string]bool{}}
	db := testredis.New(t)
	tune := func(o *digest.Options) {
		o.Cap, o.CapCategory, o.Keep, o.Attempts, o.Stagger = 10_000, 10_000, 5, 100, time.Hour
	}
	h.bench, h.other = on(t, db, tune), on(t, db, tune)
	h.other.Clock, h.other.mails = h.Clock, h.mails
	second, err := digest.New(h.parts(h.other), digest.Options{Workers: 2, Hour: 8, Now: h.Now, Gap: 5 * time.Minute,
		Grace: 15 * time.Minute, Cap: 10_000, CapCategory: 10_000, Keep: 5, Attempts: 100, Stagger: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	h.other.Digests = second
	db.Client().AddHook(h.net)
	return h
}

// step does one thing, chosen by chance.
func (h *house) step(t testing.TB) {
	readers := []string{"ann", "bob"}
	who := readers[h.dice.IntN(len(readers))]
	switch n := h.dice.IntN(20); {
	case n < 8:
		h.send(t, who)
	case n < 10:
		modes := []string{"hourly", "daily", "weekly", "immediate", "daily"}
		p := api.DigestPreference{Mode: modes[h.dice.IntN(len(modes))]}
		if p.Mode == "daily" || p.Mode == "weekly" {
			p.Hour = new(h.dice.IntN(24))
		}
		zones := []string{"UTC", "Europe/Zurich", "Pacific/Apia", "America/New_York"}
		email := who + "@example.com"
		req := api.DigestRecipientRequest{Email: &email, TZ: &zones[h.dice.IntN(len(zones))],
			Preferences: map[string]*api.DigestPreference{[]string{"*", "comment", "like"}[h.dice.IntN(3)]: &p}}
		_, _ = h.Patch(t.Context(), "", who, req) // may be lost
	case n == 10:
		_, _ = h.Send(t.Context(), "", api.DigestAccount{}, who)
	case n < 15:
		h.Advance(time.Duration(h.dice.IntN(90)) * time.Minute)
	default:
		var both sync.WaitGroup
		for _, one := range []*bench{h.bench, h.other} {
			both.Go(func() { _, _ = one.Work(t.Context()) })
		}
		both.Wait()
	}
}

// send gives an event, or one again whose answer was lost; for nobody only those.
func (h *house) send(t testing.TB, who string) {
	if who != "" && (len(h.tries) == 0 || h.dice.IntN(2) == 0) {
		h.n++
		e := about(who, strconv.Itoa(h.n), "Bo")
		e.IdempotencyKey = strconv.Itoa(h.n)
		e.Category = []string{"comment", "like", "mention"}[h.dice.IntN(3)]
		if h.dice.IntN(10) == 0 {
			e.Priority = "urgent"
		}
		h.tries = append(h.tries, e)
	}
	e := h.tries[0]
	answer, err := h.Take(t.Context(), "", api.DigestEventsRequest{Events: []api.DigestEvent{e}})
	if err != nil {
		return
	}
	if r := answer.Events[0]; !r.Success || r.State == "dropped" {
		t.Fatalf("event %+v: %+v", e, r)
	}
	h.given[e.EntityID] = true
	h.tries = h.tries[1:]
}

// judge lets everything end, and compares what was mailed with what was given.
func (h *house) judge(t testing.TB) {
	t.Helper()
	h.net.set(0)
	h.mails.failWith(nil)
	for len(h.tries) > 0 {
		h.send(t, "")
	}
	for range 24 * 10 {
		h.Advance(time.Hour)
		h.settle(t)
	}
	count := map[string]int{}
	for _, m := range h.mails.all() {
		for _, g := range saidIn(t, m).Groups {
			count[g.EntityID] += g.Count
		}
	}
	for entity := range h.given {
		if count[entity] != 1 {
			t.Errorf("event %s is in %d mails", entity, count[entity])
		}
	}
	for _, who := range []string{"ann", "bob"} {
		var seen []string
		for _, r := range h.runs(t, who) {
			name := r.Schedule + " " + r.Period
			if slices.Contains(seen, name) {
				t.Errorf("%s has two runs of %s", who, name)
			}
			seen = append(seen, name)
			if r.State != api.DigestSubmitted && r.State != api.DigestSkipped {
				t.Errorf("run %+v never ended", r)
			}
		}
	}
	if left, err := h.State(t.Context()); err != nil || left.Open != 0 {
		t.Errorf("left open: %+v, %v", left, err)
	}
}

// TestEachEventIsMailedOnceWhateverIsLost plays random histories on the real scripts: replies of Redis are
// lost, submits fail before and after the outbox has the message, workers stop between any two steps, two
// processes work on the same, clocks pass, and readers change their minds. Each event is in one mail.
func TestEachEventIsMailedOnceWhateverIsLost(t *testing.T) {
	t.Parallel()
	const histories, steps = 12, 150
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := build(t, seed)
			h.mails.dice = rand.New(rand.NewPCG(seed, 3))
			h.net.set(0.05)
			for range steps {
				h.step(t)
			}
			h.mails.dice = nil
			h.judge(t)
		})
	}
}
