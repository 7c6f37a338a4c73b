package routing

import (
	"sync"
	"time"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
	"github.com/postroom/postroom/smtpsend/mxsend"
)

const (
	failuresToRest = 5
	firstRest      = 30 * time.Second
	longestRest    = 10 * time.Minute
	// maxBreakers bounds the memory of a process. Beyond it all breakers are closed.
	maxBreakers = 10_000
)

// breakers remember which relays fail. Only failing relays take memory.
type breakers struct {
	mu  sync.Mutex
	all map[string]*breaker
}

// breaker is a relay that failed since it last worked. It is closed (mail goes through) until it has failed
// often enough, then open (paused) until due, then half open: one message may try it, and all others wait for
// the result.
type breaker struct {
	settings settings // that failed; a relay with other settings is another relay
	failures int      // in a row
	rest     time.Duration
	due      time.Time // end of the pause; zero if closed
	since    time.Time // when it was opened, last
	probing  bool      // a message tries it
	last     *smtpsend.Error
}

// settings are a failing relay's. With corrected settings it counts as a relay that never failed.
type settings struct {
	relay smtpsend.Relay
	api   apisend.Target
	mx    mxsend.Target
	oauth oauth.Client
}

func settingsOf(r gateways.Relay) settings {
	s := settings{relay: r.SMTP, api: r.API, mx: r.MX}
	if r.OAuth != nil {
		s.oauth = *r.OAuth
	}
	return s
}

// pass is the right to try a relay. It has to be given back, by worked, failed or unused.
type pass struct {
	name     string
	settings settings
	began    time.Time
	probe    bool
}

// resting is a relay that must not be tried now, when it is due, and why.
type resting struct {
	due time.Time
	why *smtpsend.Error
}

// ask returns a pass to try a relay, or until when it is paused.
func (b *breakers) ask(name string, s settings, now time.Time) (pass, *resting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := pass{name: name, settings: s, began: now}
	k := b.of(p)
	switch {
	case k == nil || k.due.IsZero():
		return p, nil
	case now.Before(k.due) || k.probing:
		return pass{}, &resting{due: k.due, why: k.last}
	}
	k.probing, p.probe = true, true
	return p, nil
}

// force returns a pass for a relay, even if it is paused.
func (b *breakers) force(name string, s settings, now time.Time) pass {
	return pass{name: name, settings: s, began: now}
}

// of returns a relay's breaker, or nil if it has not failed.
func (b *breakers) of(p pass) *breaker {
	if k := b.all[p.name]; k != nil && k.settings == p.settings {
		return k
	}
	return nil
}

// worked closes the breaker: the relay took mail, or refused only this email. It reports whether it had
// rested.
func (b *breakers) worked(p pass) (closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.of(p)
	if k == nil {
		return false
	}
	delete(b.all, p.name)
	return !k.due.IsZero()
}

// failed counts a relay's failure. It returns the end of a new pause, or zero. A try that began before the
// breaker opened does not count: fifty messages that fail together are one failure.
func (b *breakers) failed(p pass, why *smtpsend.Error, now time.Time) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.of(p)
	if k == nil {
		k = b.remember(p)
	}
	if p.probe {
		k.probing = false
	}
	if p.began.Before(k.since) {
		return time.Time{}
	}
	k.failures++
	k.last = why
	if k.failures < failuresToRest {
		return time.Time{}
	}
	k.rest = min(max(2*k.rest, firstRest), longestRest)
	k.due, k.since = now.Add(k.rest), now
	return k.due
}

// resting reports whether a relay must not be tried now, whatever its settings are.
func (b *breakers) resting(name string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.all[name]
	return k != nil && now.Before(k.due)
}

func (b *breakers) remember(p pass) *breaker {
	if b.all == nil || len(b.all) >= maxBreakers {
		b.all = map[string]*breaker{}
	}
	k := &breaker{settings: p.settings}
	b.all[p.name] = k
	return k
}

// unused returns a pass whose try proved nothing.
func (b *breakers) unused(p pass) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := b.of(p); k != nil && p.probe {
		k.probing = false
	}
}

// count counts the paused relays and the ones tried after a pause: gateways, or accounts' own.
func (b *breakers) count(gateways bool) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0.0
	for name, k := range b.all {
		if !k.due.IsZero() && isGateway(name) == gateways {
			n++
		}
	}
	return n
}
