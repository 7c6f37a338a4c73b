package newsletter

import (
	"slices"
	"sync"
	"time"
)

// scheduler lets the campaigns of this process take turns, batch by batch.
type scheduler struct {
	mu    sync.Mutex
	scans map[string]*scan // by campaign
	order []string
	next  int
	idle  chan struct{} // closed when there is work again; nil if no one waits

	reservations map[string]*reservations // by campaign
}

// wake makes a worker that waits look again.
func (s *scheduler) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

// take returns the next scan that has work, or nil and what to wait for, and how long at most.
func (s *scheduler) take(now time.Time) (*scan, <-chan struct{}, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	soon := idleFor
	for range s.order {
		s.next = (s.next + 1) % len(s.order)
		next := s.scans[s.order[s.next]]
		wait, ok := next.ready(now)
		if ok && wait <= 0 {
			return next, nil, 0
		}
		if ok {
			soon = min(soon, wait)
		}
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	return nil, s.idle, soon
}

// set replaces the scans with those campaigns that are being sent. A scan of another run, or of other
// content, is replaced.
func (s *scheduler) set(live map[string]*scan) {
	defer s.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range live {
		if old := s.scans[id]; old != nil && old.same(one) {
			live[id] = old
		}
	}
	s.scans, s.order = live, s.order[:0]
	for id := range live {
		s.order = append(s.order, id)
	}
	slices.Sort(s.order)
}

// of returns a campaign's scan, or nil if this process has none.
func (s *scheduler) of(id string) *scan {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scans[id]
}

func (s *scheduler) reservationsOf(one *campaign) *reservations {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.reservations[one.id]; p != nil && p.gateway == one.Gateway {
		return p
	}
	p := &reservations{gateway: one.Gateway}
	s.reservations[one.id] = p
	return p
}

// over forgets the reservations of a campaign that has ended.
func (s *scheduler) over(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.reservations, id)
}
