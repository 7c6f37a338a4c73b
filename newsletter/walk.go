package newsletter

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/internal/schedule"
	"github.com/postroom/postroom/newsletter/audience"
	"github.com/postroom/postroom/newsletter/sendlog"
	"github.com/postroom/postroom/outbox"
)

const (
	stretchPages = 64  // pages of 32 subscribers that a walk reads at once
	sheetPeople  = 100 // people of a sheet
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
}

// poke makes a postman that waits look again.
func (t *turns) poke() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.wake != nil {
		close(t.wake)
		t.wake = nil
	}
}

// take returns the next walk that has work, or nil and what to wait for.
func (t *turns) take(now time.Time) (*walk, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range t.order {
		t.next = (t.next + 1) % len(t.order)
		if w := t.walks[t.order[t.next]]; w.ready(now) {
			return w, nil
		}
	}
	if t.wake == nil {
		t.wake = make(chan struct{})
	}
	return nil, t.wake
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
	c        *campaign
	key      sendlog.Run
	choice   *audience.Choice
	letters  []*outbox.Letter // by variant
	mail     mail
	window   schedule.Window
	zone     *time.Location
	excluded []sendlog.Run // whoever got one of these is left out
	earlier  []sendlog.Run // the runs before

	mu          sync.Mutex
	until       time.Time            // it rests until then
	why         string               // in words
	reservation limits.Reservation   // of its rate; empty: none
	places      []limits.Reservation // in the limits of the account and the relay, of mails that could not wait
	failed      time.Time            // since when the relay is in trouble; zero: it is not
	chunks      int
	first       int               // chunk that it began with
	passed      int               // chunks that it is through with
	at          int               // how far the chunk was walked, as the send log says
	to          int               // how far people were read
	again       time.Time         // when to walk the chunk again, for people who were left out
	buffer      []audience.Person // those read and not claimed
	sets        map[sendlog.Run][]sendlog.State
	opened      map[sendlog.Run]sendlog.Set
	setsOf      int // chunk of sets and opened
}

// same reports whether another walk would do the same.
func (w *walk) same(other *walk) bool {
	return w.key == other.key && w.c.Gate == other.c.Gate
}

// ready reports whether there may be people to mail now.
func (w *walk) ready(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !now.Before(w.until) && w.passed < w.chunks
}

// rest makes the walk wait.
func (w *walk) rest(until time.Time, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if until.After(w.until) {
		w.until, w.why = until, why
	}
}

// newWalk prepares the walk of a run.
func (c *keeper) newWalk(ctx context.Context, one *campaign) (*walk, error) {
	run := one.run()
	w := &walk{c: one, key: one.key(), zone: time.UTC, setsOf: -1, chunks: sendlog.Chunks(run.End)}
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
		letter, err := c.Outbox.Thaw(ctx, shared(as(one.Campaign, i), run.Subject, one.Bound), frozen)
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
	for _, id := range one.ExcludeCampaigns {
		other, err := c.known(ctx, id)
		if err != nil {
			return nil, err
		}
		for n := range other.Runs {
			w.excluded = append(w.excluded, sendlog.Run{Campaign: other.Number, Number: n + 1})
		}
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
func (w *walk) forget() {
	w.at, w.to, w.buffer, w.again = 0, 0, nil, time.Time{}
}

// claim takes the next sheet. It is nil if there is none now.
func (c *keeper) claim(ctx context.Context, w *walk) (*sendlog.Sheet, []audience.Person, error) {
	if c.waits(ctx, w) {
		return nil, nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.passed < w.chunks && ctx.Err() == nil {
		chunk, size := w.chunk(), w.sizeOf(w.chunk())
		if len(w.buffer) == 0 && w.to < size {
			if err := c.read(ctx, w, chunk, size); err != nil {
				return nil, nil, err
			}
		}
		claim := sendlog.Claim{Version: w.c.Gate, From: w.at, To: w.to, Last: w.to == size, Again: w.again,
			Most: w.most()}
		for _, p := range w.buffer[:min(len(w.buffer), 2*sheetPeople)] {
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
		sheet, at, moved, shut, err := c.Log.Claim(ctx, w.key, chunk, claim)
		if err != nil || shut {
			return nil, nil, err
		}
		people := w.through(sheet, at, moved)
		if !moved && at == size && sheet == nil || moved && at >= size {
			w.passed++
			w.forget()
		}
		if sheet != nil {
			return sheet, people, nil
		}
	}
	return nil, nil, nil
}

// most is how many people a sheet has: fewer for a campaign with a low rate, so that it is even.
func (w *walk) most() int {
	if w.c.Rate > 0 {
		return max(1, min(sheetPeople, int(w.c.Rate)))
	}
	return sheetPeople
}

// sizeOf returns the offsets of a chunk.
func (w *walk) sizeOf(chunk int) int {
	return min(sendlog.ChunkSize, int(w.c.run().End)-chunk*sendlog.ChunkSize)
}

// through drops people up to an offset, and returns those of a sheet.
func (w *walk) through(sheet *sendlog.Sheet, at int, moved bool) []audience.Person {
	var people []audience.Person
	if sheet != nil {
		of := make(map[int]bool, len(sheet.Offsets))
		for _, o := range sheet.Offsets {
			of[o] = true
		}
		for _, p := range w.buffer {
			if _, o := sendlog.ChunkOf(p.Ordinal); of[o] {
				people = append(people, p)
			}
		}
	}
	if moved && (at < w.at || at > w.to) { // people were given back, or others are far ahead
		w.buffer, w.to, w.again = nil, at, time.Time{}
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

// read reads the next people of a chunk.
func (c *keeper) read(ctx context.Context, w *walk, chunk, size int) error {
	from, end := uint32(chunk*sendlog.ChunkSize+w.to), uint32(chunk*sendlog.ChunkSize+size)
	people, next, err := c.Audience.People(ctx, w.choice, from, end, stretchPages)
	if err != nil {
		return err
	}
	if err := c.readSets(ctx, w, chunk); err != nil {
		return err
	}
	now := c.opts.Now()
	for _, p := range people {
		if !w.wanted(p) {
			continue
		}
		opens := w.opens(p, now)
		if w.c.variantOf(w.key.Number, p.Ordinal) == undecided {
			opens = forWinner
		}
		if opens.After(now) {
			if w.again.IsZero() || opens.Before(w.again) {
				w.again = opens
			}
			continue
		}
		w.buffer = append(w.buffer, p)
	}
	w.to = int(next) - chunk*sendlog.ChunkSize
	return nil
}

// opens returns when a person may be mailed, as the window says.
func (w *walk) opens(p audience.Person, now time.Time) time.Time {
	if w.c.Window == nil || w.c.Window.Of != "recipient" {
		return now
	}
	zone, err := schedule.Zone(p.TZ)
	if err != nil {
		zone = w.zone
	}
	return w.window.Next(now, zone)
}

// readSets reads who got other campaigns, and the runs before, of a chunk.
func (c *keeper) readSets(ctx context.Context, w *walk, chunk int) error {
	if w.setsOf == chunk || len(w.excluded)+len(w.earlier) == 0 {
		return nil
	}
	w.sets, w.opened = map[sendlog.Run][]sendlog.State{}, map[sendlog.Run]sendlog.Set{}
	for _, run := range slices.Concat(w.excluded, w.earlier) {
		states, err := c.Log.States(ctx, run, chunk)
		if err != nil {
			return err
		}
		w.sets[run] = states
		if w.c.run().To == toNotOpened {
			if w.opened[run], err = c.Log.Bits(ctx, run, chunk, sendlog.Opened); err != nil {
				return err
			}
		}
	}
	w.setsOf = chunk
	return nil
}

// got reports whether a person got a mail of a run, or may have.
func (w *walk) got(run sendlog.Run, offset int) bool {
	states := w.sets[run]
	if offset >= len(states) {
		return false
	}
	switch states[offset] {
	case sendlog.Sent, sendlog.Deferred, sendlog.AtDot, sendlog.InDoubt:
		return true
	}
	return false
}

// wanted reports whether the run goes to a person of its lists: the person got no excluded campaign, and had
// in the runs before what the run is for.
func (w *walk) wanted(p audience.Person) bool {
	_, offset := sendlog.ChunkOf(p.Ordinal)
	for _, run := range w.excluded {
		if w.got(run, offset) {
			return false
		}
	}
	if len(w.earlier) == 0 {
		return true
	}
	had, got, opened := sendlog.Waiting, false, false // in the last run that had the person
	for _, run := range w.earlier {
		if states := w.sets[run]; offset < len(states) && states[offset] != sendlog.Waiting {
			had = states[offset]
		}
		got = got || w.got(run, offset)
		opened = opened || w.opened[run].Has(offset)
	}
	switch w.c.run().To {
	case toFailed:
		return had == sendlog.Failed && !got
	case toInDoubt:
		return had == sendlog.InDoubt
	case toNotOpened:
		return had == sendlog.Sent && !opened
	}
	return !got && had == sendlog.Waiting
}

// waits reports whether a walk has to wait for its window or its rate, and makes it rest until then.
func (c *keeper) waits(ctx context.Context, w *walk) bool {
	now := c.opts.Now()
	if w.c.Window != nil && w.c.Window.Of != "recipient" {
		if opens := w.window.Next(now, w.zone); opens.After(now) {
			w.rest(earlier(opens, now.Add(time.Minute)), "its window opens at "+opens.Format(time.RFC3339))
			return true
		}
	}
	if w.c.Rate <= 0 {
		return false
	}
	answer, err := c.Limits.Take(ctx, []limits.Scope{{Name: "campaign:" + w.c.id,
		Rate: limits.Rate{PerSecond: w.c.Rate}}}, w.most(), w.reserved(nil))
	switch {
	case err != nil:
		w.rest(now.Add(time.Second), "the limits can't be asked")
	case !answer.OK:
		w.reserved(&answer.Reservation)
		w.rest(answer.At, answer.Reason)
	default:
		return false
	}
	return true
}

// kept takes a reservation in the limits of the account or the relay that a mail left; keep leaves one.
func (w *walk) kept() limits.Reservation {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.places)
	if n == 0 {
		return ""
	}
	had := w.places[n-1]
	w.places = w.places[:n-1]
	return had
}

func (w *walk) keep(had limits.Reservation) {
	if had == "" {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.places = append(w.places, had)
}

// reserved takes the reservation of the rate that the walk has, or leaves one for the next postman.
func (w *walk) reserved(leave *limits.Reservation) limits.Reservation {
	w.mu.Lock()
	defer w.mu.Unlock()
	had := w.reservation
	if w.reservation = ""; leave != nil {
		w.reservation = *leave
	}
	return had
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
