package queue

import (
	"sync"
	"time"
)

const (
	paceOver  = 5 * time.Minute  // over which the pace of a queue is measured
	paceFrom  = 20 * time.Second // a shorter time tells nothing
	paceEvery = 5 * time.Second  // between two samples that are kept
)

// sample is how many tasks of a queue were done at a time, in the life of the queue.
type sample struct {
	at    time.Time
	total int
}

// pace measures how many tasks of each queue all processes do. Its zero value works. Whoever counts the
// queues adds a sample: package alerts does so regularly in each process.
type pace struct {
	mu   sync.Mutex
	seen map[string][]sample // by queue, oldest first
}

// note adds a sample, and returns the tasks per minute since the oldest one; nil if that is not known yet.
func (p *pace) note(queue string, total int, now time.Time) *float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[string][]sample{}
	}
	seen := p.seen[queue]
	if n := len(seen); n > 0 && total < seen[n-1].total {
		seen = nil // the queue was deleted, and starts again
	}
	for len(seen) > 1 && now.Sub(seen[0].at) > paceOver {
		seen = seen[1:]
	}
	if n := len(seen); n == 0 || now.Sub(seen[n-1].at) >= paceEvery {
		seen = append(seen, sample{now, total})
	}
	p.seen[queue] = seen
	over := now.Sub(seen[0].at)
	if over < paceFrom {
		return nil
	}
	perMinute := float64(total-seen[0].total) / over.Minutes()
	return &perMinute
}
