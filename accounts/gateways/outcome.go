package gateways

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/smtpsend"
)

// The states of a gateway.
const (
	stateUnset     = "unset"     // no use yet, or none since the gateway was changed
	stateConnected = "connected" // the relay was reached and let us in
	stateError     = "error"     // it was not, or did not; lastError says why
	stateOpen      = "open"      // it failed so often that it rests for a while
)

const (
	// writeEvery is how often at most what a gateway met is written, by each process.
	writeEvery = time.Second
	// forgetAfter is how long a gateway that isn't used is remembered.
	forgetAfter = time.Minute
	// writeTimeout ends the last write of a process that stops.
	writeTimeout = 3 * time.Second
	// maxErrorText bounds the text that is kept of an error, in bytes.
	maxErrorText = 500
)

// use is what a gateway met and is not written yet, and when it was last written.
type use struct {
	took  int       // messages
	last  time.Time // zero: no use
	state string    // empty: nothing new
	until time.Time // end of a rest
	text  string    // of an error
	code  string
	at    time.Time // when that error was met

	written time.Time // when this process last wrote
	shown   string    // the state it then wrote
}

// Outcome notes what an attempt through a gateway met: took says how many messages it took (0 or 1 for one
// attempt), err is nil on success. It writes to Redis at most once a second for each gateway, and what it
// doesn't write waits for the next time, or for Run; the first error after a success is written at once. A
// refused recipient or message is no trouble of the gateway: it was there and let us in.
func (s *Store) Outcome(ctx context.Context, id string, took int, err error) {
	now := s.now()
	state, text, code := Met(err)
	s.note(ctx, id, now, func(u *use) {
		u.took += took
		if state == "" {
			return
		}
		u.last, u.state = now, state
		if state == stateError {
			u.text, u.code, u.at = text, code, now
		}
	})
}

// Opened notes that a gateway failed so often that it is left alone until a time.
func (s *Store) Opened(ctx context.Context, id string, until time.Time) {
	s.note(ctx, id, s.now(), func(u *use) { u.state, u.until = stateOpen, until })
}

// Met decides what the end of an attempt says about the relay: "connected", "error" with a text and a code
// for people, or nothing.
func Met(err error) (state, text, code string) {
	if err == nil {
		return stateConnected, "", ""
	}
	e, ok := errors.AsType[*smtpsend.Error](err)
	if ok {
		switch e.Scope {
		case smtpsend.ScopeRecipient, smtpsend.ScopeMessage, smtpsend.ScopeDestination:
			if e.Code != 0 {
				return stateConnected, "", ""
			}
			return "", "", ""
		}
		code = e.Name()
	}
	if errors.Is(err, context.Canceled) {
		return "", "", ""
	}
	return stateError, Printable(err.Error()), code
}

// note changes what is to be written of a gateway, and writes it when it is time to.
func (s *Store) note(ctx context.Context, id string, now time.Time, change func(u *use)) {
	s.mu.Lock()
	u := s.uses[id]
	if u == nil {
		u = &use{}
		s.uses[id] = u
	}
	before := *u
	change(u)
	news := u.state != "" && u.state != stateConnected && u.state != before.state && u.state != u.shown
	due := news || now.Sub(u.written) >= writeEvery || now.Before(u.written)
	s.mu.Unlock()
	if due {
		s.write(ctx, id, now)
	}
}

// write puts what a gateway met into Redis. When that fails it is kept for the next time.
func (s *Store) write(ctx context.Context, id string, now time.Time) {
	out, ok := s.takeOut(id, now)
	if !ok {
		return
	}
	err := s.met(ctx, id, out)
	if err == nil {
		return
	}
	s.log.WarnContext(ctx, "state of a gateway not noted yet", "gateway", id, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[id]
	if u == nil {
		return // changed or deleted meanwhile
	}
	u.took += out.took
	if u.last.IsZero() {
		u.last = out.last
	}
	if u.state == "" {
		u.state, u.until, u.text, u.code, u.at = out.state, out.until, out.text, out.code, out.at
	}
	u.shown = ""
}

// takeOut takes what is to be written of a gateway; false when there is nothing.
func (s *Store) takeOut(id string, now time.Time) (use, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[id]
	if u == nil || u.took == 0 && u.state == "" {
		return use{}, false
	}
	out := *u
	*u = use{written: now, shown: out.shown}
	if out.state != "" {
		u.shown = out.state
	}
	return out, true
}

// Run writes what gateways met each second until ctx ends, and then what is left. It returns nil.
func (s *Store) Run(ctx context.Context) error {
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.flush(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
			defer cancel()
			s.flush(last)
			return nil
		}
	}
}

// flush writes all that is not written yet.
func (s *Store) flush(ctx context.Context) {
	now := s.now()
	s.mu.Lock()
	maps.DeleteFunc(s.uses, func(_ string, u *use) bool {
		return u.took == 0 && u.state == "" &&
			now.Sub(u.written) > forgetAfter
	})
	ids := slices.Collect(maps.Keys(s.uses))
	s.mu.Unlock()
	for _, id := range ids {
		s.write(ctx, id, now)
	}
}

// Printable makes text of a relay fit for one line on a page.
func Printable(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	return message.Clip(s, maxErrorText)
}
