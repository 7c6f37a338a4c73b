package digest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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
	share float64 // share of calls that fail; 0 if none
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
	tries []api.DigestEvent // with unknown result: they are sent again, under their keys
	n     int
	daily bool     // readers want all of a day in an email, and are far from UTC
	odd   []string // what a reader must not see
}

// build makes a house. A fault may be planted in the parts of both processes.
func build(t testing.TB, seed uint64, faults ...func(*house, *digest.Parts)) *house {
	t.Helper()
	h := &house{net: &lossy{dice: rand.New(rand.NewPCG(seed, 1))}, dice: rand.New(rand.NewPCG(seed, 2)),
		given: map[string]bool{}, daily: seed%2 == 1}
	db := testredis.New(t)
	tune := func(o *digest.Options) {
		o.Cap, o.CapCategory, o.Keep, o.Attempts, o.Stagger = 10_000, 10_000, 5, 100, time.Hour
	}
	h.bench, h.other = on(t, db, tune), on(t, db, tune)
	h.other.mails = h.mails
	for _, one := range []*bench{h.bench, h.other} {
		parts := one.parts()
		for _, plant := range faults {
			if plant != nil {
				plant(h, &parts)
			}
		}
		one.remake(t, parts, tune)
	}
	db.Client().AddHook(h.net)
	return h
}

// step does one thing, chosen by chance.
func (h *house) step(t testing.TB) {
	readers := []string{"ann", "bob"}
	who := readers[h.dice.IntN(len(readers))]
	switch n := h.dice.IntN(20); {
	case n < 7:
		h.send(t, who)
	case n < 10:
		h.choose(t, who)
	case n == 10:
		_, _ = h.Send(t.Context(), "", api.DigestAccount{}, who)
	case n < 15:
		most := []int{10, 90, 90, 600}[h.dice.IntN(4)]
		h.Advance(time.Duration(h.dice.IntN(most)) * time.Minute)
		// The clock of the other process is wrong by up to three hours.
		h.other.Set(h.Now().Add(time.Duration(h.dice.IntN(361)-180) * time.Minute))
	default:
		var both sync.WaitGroup
		both.Go(func() { _, _ = h.Work(t.Context()) })
		both.Go(func() { _, _ = h.other.Work(t.Context()) })
		both.Wait()
	}
}

// choose changes preferences, and sometimes the zone. The answer may be lost.
func (h *house) choose(t testing.TB, who string) {
	modes := []string{"hourly", "daily", "daily", "weekly", "immediate"}
	zones := []string{"UTC", "Europe/Zurich", "Pacific/Apia", "America/New_York"}
	if h.daily {
		modes, zones = modes[1:2], zones[2:]
	}
	p := api.DigestPreference{Mode: modes[h.dice.IntN(len(modes))]}
	if p.Mode == "daily" || p.Mode == "weekly" {
		p.Hour = new(h.dice.IntN(24))
	}
	category := []string{"*", "comment", "like"}[h.dice.IntN(3)]
	email := who + "@example.com"
	req := api.DigestRecipientRequest{Email: &email, Preferences: map[string]*api.DigestPreference{category: &p}}
	if h.dice.IntN(3) == 0 {
		req.TZ = &zones[h.dice.IntN(len(zones))]
	}
	_, _ = h.Patch(t.Context(), "", who, req)
}

// send gives an event, or one again whose answer was lost; for no one only the latter.
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
	at := []*bench{h.bench, h.other}[h.dice.IntN(2)]
	answer, err := at.AddEvents(t.Context(), "", api.DigestEventsRequest{Events: []api.DigestEvent{e}})
	if err != nil {
		return
	}
	if r := answer.Events[0]; !r.Success || r.State == "dropped" {
		t.Fatalf("event %+v: %+v", e, r)
	}
	h.given[e.EntityID] = true
	h.tries = h.tries[1:]
}

// play makes a history, and returns what a reader must not see of it.
func (h *house) play(t testing.TB, seed uint64) []string {
	t.Helper()
	h.mails.dice = rand.New(rand.NewPCG(seed, 3))
	h.net.set(0.05)
	for range 200 {
		h.step(t)
	}
	h.mails.dice = nil
	h.net.set(0)
	for len(h.tries) > 0 {
		h.send(t, "")
	}
	for range 6 * 16 { // two weeks: weekly mail comes, even if this week had its mail
		h.Advance(4 * time.Hour)
		h.settle(t)
	}
	h.judgeEvents(t)
	for _, who := range []string{"ann", "bob"} {
		h.judgeRuns(t, who)
	}
	if left, err := h.State(t.Context()); err != nil || left.Open != 0 {
		h.complain("left open: %+v, %v", left, err)
	}
	return h.odd
}

func (h *house) complain(format string, args ...any) {
	h.odd = append(h.odd, fmt.Sprintf(format, args...))
}

// judgeEvents compares what was mailed with what was given.
func (h *house) judgeEvents(t testing.TB) {
	t.Helper()
	count := map[string]int{}
	for _, m := range h.mails.all() {
		for _, g := range saidIn(t, m).Groups {
			count[g.EntityID] += g.Count
		}
	}
	for entity := range h.given {
		if n := count[entity]; n == 0 {
			h.complain("event %s is in no mail", entity)
		} else if n > 1 {
			h.complain("event %s is in %d mails", entity, n)
		}
	}
}

// judgeRuns looks for two emails for one period, and for runs that never ended.
func (h *house) judgeRuns(t testing.TB, who string) {
	t.Helper()
	byRun := map[string]api.SubmitRequest{}
	for _, m := range h.mails.all() {
		var metadata struct{ DigestRun string }
		if err := json.Unmarshal(m.Metadata, &metadata); err != nil {
			t.Fatal(err)
		}
		byRun[metadata.DigestRun] = m
	}
	seen := map[string]api.DigestRun{}
	for _, r := range h.runs(t, who) {
		if r.State != api.DigestSubmitted && r.State != api.DigestSkipped {
			h.complain("run %+v never ended", r)
		}
		m, mailed := byRun[r.Run]
		if !mailed {
			continue
		}
		day := askedDay(t, r, m.TZ)
		if day == "" {
			continue
		}
		names := []string{r.Schedule}
		for _, g := range saidIn(t, m).Groups {
			names = append(names, g.Category)
		}
		for _, name := range names {
			name = fmt.Sprintf("%s of %s on %s in %s", name, who, day, m.TZ)
			if other, ok := seen[name]; ok && other.Run != r.Run {
				h.complain("two mails of one day: %s: %+v, %+v", name, other, r)
			}
			seen[name] = r
		}
	}
}

// askedDay returns the local date that a daily run was due at; "" for other runs. It uses nothing of what
// the run says of its period.
func askedDay(t testing.TB, r api.DigestRun, tz string) string {
	t.Helper()
	if !strings.HasPrefix(r.Schedule, "daily@") {
		return ""
	}
	zone, err := time.LoadLocation(tz)
	if err != nil {
		t.Fatal(err)
	}
	return r.Scheduled.In(zone).Format(time.DateOnly)
}

// TestEachEventIsMailedOnceWhateverIsLost plays random histories on the real scripts. Replies of Redis are
// lost, submits fail before and after the outbox has the message, workers stop between any two steps, two
// processes with different clocks work on the same, time passes, and readers change their minds. Each event
// is in one email, and a day has one email for each schedule and category.
func TestEachEventIsMailedOnceWhateverIsLost(t *testing.T) {
	t.Parallel()
	const histories = 12
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			for _, odd := range build(t, seed).play(t, seed) {
				t.Error(odd)
			}
		})
	}
}
