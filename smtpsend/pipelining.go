package smtpsend

import (
	"net"
	"strconv"
	"sync"
	"time"
)

// losesFor is how long a relay that lost pipelined commands is remembered.
const losesFor = 6 * time.Hour

// mostLosers is how many of them are remembered.
const mostLosers = 10_000

// losers are the relays that offer PIPELINING and lose commands that arrive together. They get one command at
// a time. Some firewalls do that to relays behind them.
type losers struct {
	mu    sync.Mutex
	until map[string]time.Time // by host and port
}

// note remembers a relay, and reports whether it is new.
func (l *losers) note(relay Relay, now time.Time) bool {
	known := l.has(relay, now)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil {
		l.until = map[string]time.Time{}
	}
	for other := range l.until { // hosts of direct delivery are many
		if len(l.until) < mostLosers {
			break
		}
		delete(l.until, other)
	}
	l.until[place(relay)] = now.Add(losesFor)
	return !known
}

func (l *losers) has(relay Relay, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, ok := l.until[place(relay)]
	if ok && now.After(until) {
		delete(l.until, place(relay))
	}
	return now.Before(until)
}

func place(r Relay) string { return net.JoinHostPort(r.Host, strconv.Itoa(r.Port)) }
