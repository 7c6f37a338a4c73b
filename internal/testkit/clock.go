// This file has a clock that stands still unless a test moves it.

package testkit

import (
	"sync"
	"time"
)

// Clock tells the time that a test says it is. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// ClockAt makes a clock that shows this time.
func ClockAt(at time.Time) *Clock { return &Clock{at: at} }

// Now is the time by this clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Set moves it to a time.
func (c *Clock) Set(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = at
}

// Advance lets time pass.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
