package gateways

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// StateOpen is the state of a gateway that is paused after too many failures.
const StateOpen = stateOpen

// The states of a gateway.
const (
	stateUnset     = "unset"     // no use yet, or none since the gateway was changed
	stateConnected = "connected" // the last attempt reached the relay and logged in
	stateError     = "error"     // it did not; lastError has the reason
	stateOpen      = "open"      // paused after too many failures
)

const (
	writeEvery   = time.Second     // shortest interval of writes for one gateway, by each process
	forgetAfter  = time.Minute     // time after which an unused gateway is dropped from memory
	writeTimeout = 3 * time.Second // for the last write of a process that stops
)

// MostErrorText bounds the texts of errors that accounts and gateways keep, in bytes.
const MostErrorText = 500

// met is the results of attempts through a gateway since the last write.
type met struct {
	Took       int       // messages
	Last       time.Time // zero means no use
	State      string    // empty if nothing is new
	RestsUntil time.Time // if the state is open
	Text       string    // an error's
	Code       string
	At         time.Time // the error's
}

// use is the results of a gateway that are not written yet.
type use struct {
	met
	written time.Time // last write of this process
	shown   string    // state of that write
}

// Outcome stores the result of an attempt through a gateway: the number of messages it took (0 or 1 for one
// attempt), and the error, nil on success. It writes to Redis at most once a second for each gateway. The
// rest waits for the next time, or for Run; the first error after a success is written immediately. A refused
// recipient or message does not count against the gateway, which accepted the login.
func (s *Store) Outcome(ctx context.Context, id string, took int, err error) {
	now := s.now()
	state, text, code := Met(err)
	s.note(ctx, id, now, func(u *use) {
		u.Took += took
		if state == "" {
			return
		}
		u.Last, u.State = now, state
		if state == stateError {
			u.Text, u.Code, u.At = text, code, now
		}
	})
}

// Opened stores that a gateway is paused until a time after too many failures.
func (s *Store) Opened(ctx context.Context, id string, until time.Time) {
	s.note(ctx, id, s.now(), func(u *use) { u.State, u.RestsUntil = stateOpen, until })
}

// Met returns the state of a relay after an attempt: "connected", "error" with a text and a code for
// operators, or empty if the error proves nothing.
func Met(err error) (state, text, code string) {
	if err == nil {
		return stateConnected, "", ""
	}
	e, ok := errors.AsType[*smtpsend.Error](err)
	if ok {
		switch e.Scope {
		case smtpsend.ScopeRecipient, smtpsend.ScopeMessage, smtpsend.ScopeDestination, smtpsend.ScopeDomain:
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
	return stateError, message.OneLine(err.Error(), MostErrorText), code
}

// note changes the results of a gateway, and writes them if it is time to.
func (s *Store) note(ctx context.Context, id string, now time.Time, change func(u *use)) {
	s.mu.Lock()
	u := s.uses[id]
	if u == nil {
		u = &use{}
		s.uses[id] = u
	}
	before := *u
	change(u)
	news := u.State != "" && u.State != stateConnected && u.State != before.State && u.State != u.shown
	due := news || now.Sub(u.written) >= writeEvery || now.Before(u.written)
	s.mu.Unlock()
	if due {
		s.write(ctx, id, now)
	}
}

// write writes the results of a gateway to Redis. If that fails, they are kept for the next time.
func (s *Store) write(ctx context.Context, id string, now time.Time) {
	out, ok := s.takeOut(id, now)
	if !ok {
		return
	}
	_, err := metScript.Run(ctx, s.client, []string{s.store.Key(id), s.store.StateKey(id)}, out)
	if err == nil {
		return
	}
	s.log.WarnContext(ctx, "state of a gateway not stored yet", "gateway", id, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[id]
	if u == nil {
		return // it has been changed or deleted since
	}
	took, last := u.Took+out.Took, u.Last
	if last.IsZero() {
		last = out.Last
	}
	if u.State == "" {
		u.met = out
	}
	u.Took, u.Last, u.shown = took, last, ""
}

// takeOut takes a gateway's results that must be written, or returns false.
func (s *Store) takeOut(id string, now time.Time) (met, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.uses[id]
	if u == nil || u.idle() {
		return met{}, false
	}
	out := u.met
	*u = use{written: now, shown: cmp.Or(out.State, u.shown)}
	return out, true
}

func (u *use) idle() bool { return u.Took == 0 && u.State == "" }

// Run writes results each second until ctx ends, and then the rest. It returns nil.
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

// flush writes all results.
func (s *Store) flush(ctx context.Context) {
	now := s.now()
	s.mu.Lock()
	maps.DeleteFunc(s.uses, func(_ string, u *use) bool { return u.idle() && now.Sub(u.written) > forgetAfter })
	ids := slices.Collect(maps.Keys(s.uses))
	s.mu.Unlock()
	for _, id := range ids {
		s.write(ctx, id, now)
	}
}
