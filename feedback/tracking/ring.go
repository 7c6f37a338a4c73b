package tracking

import (
	"sync"
	"time"

	"github.com/postroom/postroom/outbox"
)

// ring holds hits in the order they came, up to a number and a size: beyond, the oldest go.
type ring struct {
	maxHits, maxBytes int

	mu      sync.Mutex
	queue   []*hit // from head on; nil before
	head    int
	first   uint64 // number of the hit at head, counted from the beginning
	bytes   int
	keys    map[string]struct{} // of what is in the queue
	readers map[reader]*visits
}

func newRing(maxHits, maxBytes int) *ring {
	return &ring{maxHits: maxHits, maxBytes: maxBytes, keys: map[string]struct{}{}, readers: map[reader]*visits{}}
}

// put adds a hit, unless it is in the ring already, and says how many others went for it.
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

// watch notes a click among those of its reader.
func (r *ring) watch(h *hit, now time.Time) {
	who := reader{h.stamp.MessageID, h.stamp.Recipient}
	v := r.readers[who]
	if v == nil {
		if len(r.readers) >= maxVisits {
			return
		}
		v = &visits{}
		r.readers[who] = v
	}
	v.click(linkHash(h.stamp.URL), now)
	h.visits = v
}

// ripe gives up to max facts of hits that came at until or before, and the number of the hit behind them. They stay until done.
func (r *ring) ripe(until time.Time, max int) (facts []outbox.Later, next uint64) {
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

// done lets go of all hits before a number.
func (r *ring) done(next uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.first < next && r.length() > 0 {
		r.pop()
	}
}

// sweep forgets readers who have followed no link for so long that it says nothing any more.
func (r *ring) sweep(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for who, v := range r.readers {
		if now.Sub(v.last) > burstStays+burstWithin {
			delete(r.readers, who)
		}
	}
}

// len is how many hits wait.
func (r *ring) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.length()
}

func (r *ring) length() int { return len(r.queue) - r.head }

// pop lets go of the oldest hit. The queue is moved to the front of its room when half of it is empty.
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
