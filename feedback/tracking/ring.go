package tracking

import (
	"sync"
	"time"

	"github.com/postroom/postroom/outbox"
)

// ring holds hits in order, up to a number and a size. Beyond them the oldest are dropped.
type ring struct {
	maxHits, maxBytes int

	mu      sync.Mutex
	queue   []*hit // from head on; nil before
	head    int
	first   uint64 // number of the hit at head, counted from the beginning
	bytes   int
	keys    map[string]struct{} // keys of what is in the queue
	readers map[reader]*visits
}

func newRing(maxHits, maxBytes int) *ring {
	return &ring{maxHits: maxHits, maxBytes: maxBytes, keys: map[string]struct{}{},
		readers: map[reader]*visits{}}
}

// put adds a hit unless the ring has it already. It returns how many others were dropped for it.
func (r *ring) put(h *hit, now time.Time) (again bool, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, again = r.keys[h.key]; again {
		return true, 0
	}
	if h.kind == clicked {
		r.watch(h, now)
	}
	for r.length() > 0 && (r.length() >= r.maxHits || r.bytes+h.size() > r.maxBytes) {
		r.pop()
		dropped++
	}
	r.queue = append(r.queue, h)
	r.keys[h.key] = struct{}{}
	r.bytes += h.size()
	return false, dropped
}

// watch adds a click to its reader's clicks.
func (r *ring) watch(h *hit, now time.Time) {
	who := reader{h.token.MessageID, h.token.Recipient}
	v := r.readers[who]
	if v == nil {
		if len(r.readers) >= maxVisits {
			return
		}
		v = &visits{}
		r.readers[who] = v
	}
	v.click(linkHash(h.token.URL), now)
	h.visits = v
}

// ripe returns up to max facts of hits up to the time until, and the number of the hit after them. They stay
// until done.
func (r *ring) ripe(until time.Time, max int) (facts []outbox.Fact, next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range r.queue[r.head:] {
		if len(facts) == max || h.at.After(until) {
			break
		}
		facts = append(facts, h.fact())
	}
	return facts, r.first + uint64(len(facts))
}

// done removes all hits before a number.
func (r *ring) done(next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.first < next && r.length() > 0 {
		r.pop()
	}
}

// sweep removes readers whose last click is too old for a burst.
func (r *ring) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for who, v := range r.readers {
		if now.Sub(v.last) > burstStays+burstWithin {
			delete(r.readers, who)
		}
	}
}

// len is the number of hits.
func (r *ring) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.length()
}

func (r *ring) length() int { return len(r.queue) - r.head }

// pop removes the oldest hit. The queue moves to the front of its array when half of that is empty.
func (r *ring) pop() {
	h := r.queue[r.head]
	r.queue[r.head] = nil
	r.head++
	r.first++
	r.bytes -= h.size()
	delete(r.keys, h.key)
	if r.head > len(r.queue)/2 {
		n := copy(r.queue, r.queue[r.head:])
		clear(r.queue[n:])
		r.queue, r.head = r.queue[:n], 0
	}
}
