package routing

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/smtpsend"
)

// A worker of this process is held by a relay that answers, not by a silent one. So the messages that a relay
// may have under way depend on its answers: few at first, twice as many with each answer, and one after a
// silence. While some of them are overdue it gets no more.
const (
	firstSlots   = 2                      // messages under way at a relay that has not answered yet
	mostSlots    = 1 << 10                // at one that answers
	overdueAfter = 2 * time.Second        // under way for so long, or twice as long as usual: overdue
	mostOverdue  = 3                      // more overdue messages: the relay stalls
	slotPatience = 50 * time.Millisecond  // how long a message waits for a slot before it goes back
	linePatience = 100 * time.Millisecond // how long it then waits for a connection
	expectFor    = time.Second            // how long a message that was woken is expected
	lookEvery    = time.Second            // how often it is checked whether a relay stalls
	awayFor      = 15 * time.Minute       // how long a relay without more mail counts as unavailable
	// maxRelays bounds the memory of a process. Beyond it relays without messages under way are forgotten.
	maxRelays = 10_000
)

// connectionLimits are all relays' limits, by scope.
type connectionLimits struct {
	now  func() time.Time
	most int // messages under way at relays that have not answered; 0 means any number

	mu       sync.Mutex
	all      map[string]*connectionLimit
	untested int // messages under way at relays that have not answered
}

// connectionLimit bounds the messages that one relay has under way.
type connectionLimit struct {
	allowed int
	slots   []*slot       // under way, oldest first
	most    int           // connections of this process
	took    time.Duration // a message takes, on average; 0 if unknown
	left    time.Time     // when a message last left with an answer
	changed chan struct{} // closed when a message has left or given up; nil if no one waits for that
	waiting []*waiter     // messages that wait for a slot, in the order in which they came

	ended time.Time // when a message last left
	away  time.Time // since when it has not answered: it stalls, or attempts failed; zero if it answers
	told  bool      // the log has that it stalls

	expected int       // messages that were woken and have not come yet
	woken    time.Time // when, last
}

// waiter is a message that waits for a slot.
type waiter struct{ lane api.Lane }

// slot is a message under way.
type slot struct {
	scope    string
	began    time.Time
	untested bool
}

func newConnectionLimits(most int, now func() time.Time) *connectionLimits {
	return &connectionLimits{now: now, most: most, all: map[string]*connectionLimit{}}
}

// enter returns a slot; nil if the relay has none soon, or if the message is behind others that wait longer
// than that. stalls reports that it owes answers.
func (g *connectionLimits) enter(c candidate, lane api.Lane, behind bool) (t *slot, stalls bool) {
	var timeout <-chan time.Time
	me := &waiter{lane}
	defer g.giveUp(c.scope, me)
	for {
		t, stalls, changed := g.try(c, me, behind)
		if t != nil || stalls || changed == nil {
			return t, stalls
		}
		if timeout == nil {
			timeout = time.After(slotPatience)
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, false
		}
	}
}

// try returns a slot, or a channel that is closed when there may be one, or nil if that will not be soon.
func (g *connectionLimits) try(c candidate, me *waiter, behind bool) (t *slot, stalls bool,
	changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k, now := g.of(c.scope), g.now()
	k.most = c.Most()
	if !behind {
		k.expected = max(0, k.expected-1)
	}
	switch {
	case k.room(now) == 0 && k.mute(now):
		return nil, true, nil
	case behind || len(k.slots) >= k.limit(me.lane, 3):
		return nil, false, nil
	}
	if !slices.Contains(k.waiting, me) {
		k.waiting = append(k.waiting, me)
	}
	if k.waiting[0] == me && k.room(now) > 0 && (!k.unproven() || g.most == 0 || g.untested < g.most) {
		t = &slot{scope: c.scope, began: now, untested: k.unproven()}
		k.slots = append(k.slots, t)
		if t.untested {
			g.untested++
		}
		return t, false, nil
	}
	if k.changed == nil {
		k.changed = make(chan struct{})
	}
	return nil, false, k.changed
}

// giveUp ends the wait of a message, so that the next one may take a slot.
func (g *connectionLimits) giveUp(scope string, me *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(scope)
	if at := slices.Index(k.waiting, me); at >= 0 {
		k.waiting = slices.Delete(k.waiting, at, at+1)
		k.change()
	}
}

// change lets the messages that wait look again.
func (k *connectionLimit) change() {
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
}

// ending is how a slot ended.
type ending int

const (
	unasked   ending = iota // the relay was not asked, or we stopped
	replied                 // it answered
	unreached               // there was no connection, or it broke
	silent                  // it was waited for in vain
)

// leave ends a slot.
func (g *connectionLimits) leave(t *slot, how ending) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.all[t.scope]
	k.slots = slices.DeleteFunc(k.slots, func(other *slot) bool { return other == t })
	if t.untested {
		g.untested--
	}
	now := g.now()
	took := now.Sub(t.began)
	k.ended = now
	if (how == unreached || how == silent) && k.away.IsZero() {
		k.away = t.began
	}
	switch {
	case how == replied:
		k.allowed, k.left = min(2*k.allowed, mostSlots), now
		k.away, k.told = time.Time{}, false
		k.took = cmp.Or(k.took, took)
		k.took = (7*k.took + took) / 8
	case how == silent || took > overdueAfter:
		k.allowed = 1
	}
	k.change()
}

// wanted returns how many of the messages that wait for a relay to send now: as many as it has free
// connections, and as many again for the line if it is quick, without messages that were woken already.
func (g *connectionLimits) wanted(scope string, lane api.Lane) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	k, now := g.of(scope), g.now()
	if now.Sub(k.woken) > expectFor {
		k.expected = 0
	}
	return max(0, min(k.room(now), k.limit(lane, 2)-len(k.slots))-k.expected)
}

// expect notes that messages for a relay were woken.
func (g *connectionLimits) expect(scope string, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(scope)
	k.expected, k.woken = k.expected+n, g.now()
}

// of returns a relay's limit. The caller holds the lock.
func (g *connectionLimits) of(scope string) *connectionLimit {
	k := g.all[scope]
	if k != nil {
		return k
	}
	if len(g.all) >= maxRelays {
		for name, other := range g.all {
			if len(other.slots) == 0 {
				delete(g.all, name)
			}
		}
	}
	k = &connectionLimit{allowed: firstSlots}
	g.all[scope] = k
	return k
}

// mute reports whether a relay stalls, or has not answered since it was last silent.
func (g *connectionLimits) mute(scope string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.all[scope]
	return k != nil && k.mute(g.now())
}

// Away is a relay that does not answer.
type Away struct {
	Scope string // "gateway:<id>", or "relay:<account>" for an account's own relay
	Since time.Time
}

// look returns the relays that began to stall since the last look. It forgets that a relay is unavailable if
// there has been no mail for it.
func (g *connectionLimits) look() (stalling []Away) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for scope, k := range g.all {
		switch {
		case k.stalls(now) && !k.told:
			k.told = true
			if k.away.IsZero() {
				k.away = k.slots[0].began
			}
			stalling = append(stalling, Away{scope, k.away})
		case len(k.slots) == 0 && now.Sub(k.ended) > awayFor:
			k.away, k.told = time.Time{}, false
		}
	}
	return stalling
}

// away returns the relays that do not answer, in alphabetical order.
func (g *connectionLimits) away() []Away {
	g.mu.Lock()
	defer g.mu.Unlock()
	var out []Away
	for scope, k := range g.all {
		if !k.away.IsZero() {
			out = append(out, Away{scope, k.away})
		}
	}
	slices.SortFunc(out, func(a, b Away) int { return cmp.Compare(a.Scope, b.Scope) })
	return out
}

// limit returns how many messages of a lane the relay may have under way: one for each connection that the
// lane may use, times a factor if the relay is quick, so that some wait in line.
func (k *connectionLimit) limit(lane api.Lane, line int) int {
	most := cmp.Or(k.most, firstSlots)
	if lane == api.Bulk {
		most -= smtpsend.Reserved(most)
	}
	if k.took < linePatience {
		most *= line
	}
	return most
}

// unproven reports whether the relay has not answered since it was silent, or ever.
func (k *connectionLimit) unproven() bool { return k.allowed <= firstSlots }

func (k *connectionLimit) room(now time.Time) int {
	if k.stalls(now) {
		return 0
	}
	return max(0, k.allowed-len(k.slots))
}

func (k *connectionLimit) mute(now time.Time) bool { return k.stalls(now) || k.allowed < firstSlots }

// stalls reports whether the relay is taken to be silent: none of its messages has been answered, and all
// that it may have or that have a connection, or more than mostOverdue, are overdue.
func (k *connectionLimit) stalls(now time.Time) bool {
	overdue := 0
	limit := max(overdueAfter, 2*k.took)
	for _, t := range k.slots {
		if now.Sub(t.began) > limit {
			overdue++
		}
	}
	most := min(mostOverdue, k.allowed-1, cmp.Or(k.most, firstSlots)-1)
	return overdue > most && now.Sub(k.left) > limit
}
