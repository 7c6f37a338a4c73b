package routing

import (
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/limits"
)

// The limits that a waiting message has paid.
const (
	paidAccount = "account" // the account's limit
	paidAll     = "all"     // the account's limit and the relay's
)

// reservation is kept by a message while it waits, and shown when it comes back.
type reservation struct {
	scope string             // the relay it waits for; empty means no particular one
	paid  string             // paidAccount, paidAll, or empty
	inner limits.Reservation // package limits' reservation
}

// text returns the reservation as the caller keeps it, around package limits' reservation.
func (r reservation) text() limits.Reservation {
	if r == (reservation{}) {
		return ""
	}
	return limits.Reservation(r.scope + "|" + r.paid + "|" + string(r.inner))
}

// readReservation is the inverse of text. An invalid text means no reservation.
func readReservation(text limits.Reservation) reservation {
	parts := strings.SplitN(string(text), "|", 3)
	if len(parts) != 3 {
		return reservation{}
	}
	return reservation{scope: parts[0], paid: parts[1], inner: limits.Reservation(parts[2])}
}

// fullRelays remembers which relays are at a limit, so that messages with a choice use another without
// asking. It also keeps one unused reservation for each, from a message that used another relay. Otherwise
// each such message would waste a reservation, and a limit would never be fully used.
type fullRelays struct {
	mu     sync.Mutex
	scopes map[string]*fullRelay
}

// fullRelay is a relay at a limit.
type fullRelay struct {
	until      time.Time
	slowed     bool
	reason     string
	unused     limits.Reservation // from a message that went elsewhere
	recipients int                // that unused is for
}

// maxFullRelays bounds the memory of a process. Beyond it relays are asked again.
const maxFullRelays = 10_000

// find returns a relay that is at a limit now.
func (f *fullRelays) find(scope string, now time.Time) (fullRelay, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.scopes[scope]; k != nil && now.Before(k.until) {
		return *k, true
	}
	return fullRelay{}, false
}

// note stores that a relay is at a limit. An unused reservation stays.
func (f *fullRelays) note(scope string, k fullRelay) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.scopes[scope]
	switch {
	case old != nil:
		k.unused, k.recipients = old.unused, old.recipients
	case f.scopes == nil || len(f.scopes) >= maxFullRelays:
		f.scopes = map[string]*fullRelay{}
	}
	f.scopes[scope] = &k
}

// give keeps a reservation that its message does not use for the next message to that relay.
func (f *fullRelays) give(scope string, r limits.Reservation, recipients int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.scopes[scope]; k != nil {
		k.unused, k.recipients = r, recipients
	}
}

// take returns an unused reservation for at least that many recipients; empty if there is none.
func (f *fullRelays) take(scope string, recipients int) limits.Reservation {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.scopes[scope]
	if k == nil || recipients > k.recipients {
		return ""
	}
	r := k.unused
	k.unused, k.recipients = "", 0
	return r
}
