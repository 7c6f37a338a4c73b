package routing

import (
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/limits"
)

// What a message that waits has paid for already.
const (
	paidAccount = "account" // the account's limit
	paidAll     = "all"     // the account's and the relay's
)

// place is what a message keeps while it waits, and shows when it comes back.
type place struct {
	scope string // of the relay it waits for; empty: of none in particular
	paid  string // empty: nothing, or what slot says
	slot  limits.Slot
}

// text is the place as a Slot of ours, around that of package limits.
func (p place) text() limits.Slot {
	if p == (place{}) {
		return ""
	}
	return limits.Slot(p.scope + "|" + p.paid + "|" + string(p.slot))
}

// placeOf reads a Slot. One that can't be read is none.
func placeOf(s limits.Slot) place {
	parts := strings.SplitN(string(s), "|", 3)
	if len(parts) != 3 {
		return place{}
	}
	return place{scope: parts[0], paid: parts[1], slot: limits.Slot(parts[2])}
}

// rooms remember which relays have no room, so that messages with a choice go elsewhere without asking, and the places there which
// messages got that went elsewhere. Without that, each of them would leave a place unused, and a limit would never be reached again.
type rooms struct {
	mu     sync.Mutex
	scopes map[string]*known
}

// known is a relay without room.
type known struct {
	until  time.Time
	slowed bool
	reason string
	slot   limits.Slot // of a message that went elsewhere
	n      int         // its recipients
}

// maxKnown bounds the memory of a process. Beyond it relays are asked again.
const maxKnown = 10_000

// look says whether a relay is known to have no room now.
func (r *rooms) look(scope string, now time.Time) (known, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.scopes[scope]; k != nil && now.Before(k.until) {
		return *k, true
	}
	return known{}, false
}

// note remembers that a relay has no room.
func (r *rooms) note(scope string, k known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.scopes[scope]
	switch {
	case old != nil:
		k.slot, k.n = old.slot, old.n
	case r.scopes == nil || len(r.scopes) >= maxKnown:
		r.scopes = map[string]*known{}
	}
	r.scopes[scope] = &k
}

// leave keeps a place for the next message that comes for that relay.
func (r *rooms) leave(scope string, slot limits.Slot, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k := r.scopes[scope]; k != nil {
		k.slot, k.n = slot, n
	}
}

// spare gives a place that was left, if it is large enough for n recipients; else an empty slot.
func (r *rooms) spare(scope string, n int) limits.Slot {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.scopes[scope]
	if k == nil || n > k.n {
		return ""
	}
	slot := k.slot
	k.slot, k.n = "", 0
	return slot
}
