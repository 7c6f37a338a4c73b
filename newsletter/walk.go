package newsletter

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

const (
	stretchPages = 64  // pages of 32 subscribers that a walk reads at once
	batchPeople  = 100 // people of a batch
)

// Whom a run after the first goes to.
const (
	toFailed    = "failed"
	toInDoubt   = "inDoubt"
	toNotOpened = "notOpened"
	toNewcomers = "newcomers"
)

// turns lets the campaigns of this process take turns.
type turns struct {
	mu    sync.Mutex
	walks map[string]*walk // by campaign
	order []string
	next  int
	wake  chan struct{}

	places map[string]*places // by campaign
}

// poke makes a worker that waits look again.
func (t *turns) poke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// take returns the next walk that has work, or nil and what to wait for, and how long at most.
func (t *turns) take(now time.Time) (*walk, <-chan struct{}, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	soon := idleFor
	for range t.order {
		t.next = (t.next + 1) % len(t.order)
		w := t.walks[t.order[t.next]]
		wait, ok := w.ready(now)
		if ok && wait <= 0 {
			return w, nil, 0
		}
		if ok {
			soon = min(soon, wait)
		}
	}
	if t.wake == nil {
		t.wake = make(chan struct{})
	}
	return nil, t.wake, soon
}

// set makes the walks those of the campaigns that are being sent. A walk of another run, or of another
// content, is replaced.
func (t *turns) set(live map[string]*walk) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, w := range live {
		if old := t.walks[id]; old != nil && old.same(w) {
			live[id] = old
		}
	}
	t.walks, t.order = live, t.order[:0]
	for id := range live {
		t.order = append(t.order, id)
	}
	slices.Sort(t.order)
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// of returns the walk of a campaign; nil: this process has none.
func (t *turns) of(id string) *walk {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.walks[id]
}

// walk looks for the people of a run. It begins at any chunk, so that processes seldom meet.
type walk struct {
	c       *campaign
	key     sendlog.Run
	choice  *audience.Choice
	letters []*outbox.Letter // by variant
	mail    mail
	window  schedule.Window
	zone    *time.Location
	earlier []sendlog.Run // the runs before

	mu       sync.Mutex
	until    time.Time   // it rests until then
	lifts    time.Time   // when what it rests for is over, which may be later
	why      string      // in words
	went     time.Time   // when a mail was last tried
	quota    *string     // which quota has no room; empty: all have, nil: not asked lately
	paid     int         // mails that its rate allows now
	ahead    []time.Time // when it allows more: each time those of a turn
	places   *places     // in the limits of its account and its relays
	failed   time.Time   // since when the relay is in trouble; zero: it is not
	chunks   int
	first    int               // chunk that it began with
	passed   int               // chunks that it is through with
	at       int               // how far the chunk was walked, as the send log says
	to       int               // how far people were read
	again    time.Time         // when to walk the chunk again, for people who were left out
	buffer   []audience.Person // those read and not claimed
	read     time.Time         // when the first of the buffer was
	excluded []sendlog.Run     // whoever got one of these is left out
	sets     map[sendlog.Run][]sendlog.State
	opened   map[sendlog.Run]sendlog.Set
	setsOf   int       // chunk of sets and opened
	setsAt   time.Time // when they were read
}

// same reports whether another walk would do the same.
func (w *walk) same(other *walk) bool {
	return w.key == other.key && w.c.Gate == other.c.Gate
}

// ready returns how long the walk rests, and whether there may be people to mail then.
func (w *walk) ready(now time.Time) (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.until.Sub(now), w.passed < w.chunks
}

// rest makes the walk wait.
func (w *walk) rest(until time.Time, why string) { w.restFor(until, until, why) }

// restFor makes the walk look again at a time, at something that is over later.
func (w *walk) restFor(until, opens time.Time, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.restsFor(until, opens, why)
}

// rests is rest for whoever has the walk.
func (w *walk) rests(until time.Time, why string) { w.restsFor(until, until, why) }

// restsFor makes the walk look again at a time, at something that is over later.
func (w *walk) restsFor(until, opens time.Time, why string) {
	if until.After(w.until) {
		w.until, w.lifts, w.why = until, opens, why
	}
}

// newWalk prepares the walk of a run.
func (c *keeper) newWalk(ctx context.Context, one *campaign) (*walk, error) {
	run := one.run()
	w := &walk{c: one, key: one.key(), zone: time.UTC, setsOf: -1, went: c.opts.Now(),
		chunks: sendlog.Chunks(run.End),
		places: c.turns.placesOf(one)}
	sel := selection(one.Campaign)
	if sel.Began = run.Began; run.To != "" && run.To != toNewcomers {
		sel.Began = time.Time{}
	}
	var err error
	if w.mail, err = c.filling(ctx, one.Campaign); err != nil {
		return nil, err
	}
	if w.choice, err = c.choose(ctx, one.id, sel); err != nil {
		return nil, err
	}
	for i, frozen := range run.Letters {
		sh := shared(as(one.Campaign, i), run.Subject, one.Bound)
		sh.Token, sh.TokenQuota = one.Token, one.TokenQuota
		letter, err := c.Outbox.Thaw(ctx, sh, frozen)
		if err != nil {
			return nil, err
		}
		w.letters = append(w.letters, letter)
	}
	if one.TZ != "" {
		w.zone, _ = schedule.Zone(one.TZ) // checked when it was stored
	}
	if one.Window != nil {
		w.window, _ = schedule.ParseWindow(one.Window.Days, one.Window.From, one.Window.Until) // likewise
	}
	for n := 1; n < len(one.Runs); n++ {
		w.earlier = append(w.earlier, sendlog.Run{Campaign: one.Number, Number: n})
	}
	if w.excluded, err = c.excludedRuns(ctx, one); err != nil {
		return nil, err
	}
	if w.chunks > 0 {
		w.first = rand.IntN(w.chunks)
	}
	return w, nil
}

func (w *walk) chunk() int { return (w.first + w.passed) % w.chunks }

// restart makes the walk look at all chunks again.
func (w *walk) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.passed = 0
	w.forget()
}

// forget drops what was read of a chunk.
func (w *walk) forget() { w.from(0) }

// from drops the people who were read, so that they are read again from an offset on.
func (w *walk) from(at int) {
	w.at, w.to, w.buffer, w.again = at, at, nil, time.Time{}
}

// claim takes the next batch. It is nil if there is none now; then the walk rests.
func (c *keeper) claim(ctx context.Context, w *walk) (*batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := c.opts.Now()
	if w.until.After(now) { // another worker found that it has to
		return nil, nil
	}
	most := c.mayTake(ctx, w, now)
	if most == 0 {
		return nil, nil
	}
	for w.passed < w.chunks && ctx.Err() == nil {
		chunk, size := w.chunk(), w.sizeOf(w.chunk())
		if w.to > w.at && c.opts.Now().Sub(w.read) > freshFor {
			w.from(w.at)
		}
		if len(w.buffer) == 0 && w.to < size {
			if err := c.read(ctx, w, chunk, size); err != nil {
				return nil, err
			}
		}
		claim := sendlog.Claim{Version: w.c.Gate, From: w.at, To: w.to, Last: w.to == size, Again: w.again,
			Most: most}
		for _, p := range w.buffer[:min(len(w.buffer), 2*batchPeople)] {
			_, offset := sendlog.ChunkOf(p.Ordinal)
			claim.Offsets = append(claim.Offsets, offset)
			if len(w.c.Variants) > 0 {
				claim.Groups = append(claim.Groups, w.c.groupOf(w.key.Number, p.Ordinal))
			}
		}
		if len(claim.Offsets) < len(w.buffer) {
			_, claim.To = sendlog.ChunkOf(w.buffer[len(claim.Offsets)].Ordinal)
			claim.Last = false
		}
		taken, at, moved, shut, err := c.Log.Claim(ctx, w.key, chunk, claim)
		if err != nil || shut {
			return nil, err
		}
		people := w.through(taken, at, moved)
		if !moved && at == size && taken == nil || moved && at >= size {
			w.passed++
			w.forget()
		}
		if taken != nil {
			w.paid -= len(taken.Offsets)
			b := &batch{Batch: taken, c: c, w: w, people: people, read: w.read}
			if len(w.earlier) > 0 { // their mail of a run before may be replayed, unless that finds them taken
				b.read = time.Time{}
			}
			return b, nil
		}
	}
	w.rests(now.Add(idleFor), "")
	return nil, nil
}

// sizeOf returns the offsets of a chunk.
func (w *walk) sizeOf(chunk int) int {
	return min(sendlog.ChunkSize, int(w.c.run().End)-chunk*sendlog.ChunkSize)
}

// through drops people up to an offset, and returns those of a batch.
func (w *walk) through(batch *sendlog.Batch, at int, moved bool) []audience.Person {
	var people []audience.Person
	if batch != nil {
		of := make(map[int]bool, len(batch.Offsets))
		for _, o := range batch.Offsets {
			of[o] = true
		}
		for _, p := range w.buffer {
			if _, o := sendlog.ChunkOf(p.Ordinal); of[o] {
				people = append(people, p)
			}
		}
	}
	if moved && (at < w.at || at > w.to) { // people were given back, or others are far ahead
		w.from(at)
	}
	w.at = at
	n := 0
	for n < len(w.buffer) {
		if _, o := sendlog.ChunkOf(w.buffer[n].Ordinal); o >= at {
			break
		}
		n++
	}
	w.buffer = w.buffer[n:]
	return people
}
