package accounts

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/postroom/postroom/smtpsend"
)

// The states of an account.
const (
	stateUnset     = "unset"     // no attempt yet, or none since the account was changed
	stateConnected = "connected" // the relay was reached and let us in
	stateError     = "error"     // it was not, or did not; lastError says why
)

// rewriteAfter is how often a state is written again that did not change: for its time, and in case another process saw another one.
const rewriteAfter = time.Minute

// maxErrorText bounds the text that is kept of an error, in bytes.
const maxErrorText = 500

// outcome is what was last written of an account's state.
type outcome struct {
	state   string
	written time.Time
}

// Outcome notes what an attempt through an account met; nil is success. It writes to Redis only when the state changed, or once a
// minute. A refused recipient or message is no trouble of the account: the relay was there and let us in.
func (a *Accounts) Outcome(ctx context.Context, id string, err error) {
	state, text := stateOf(err)
	now := a.now()
	if state == "" || !a.worthWriting(id, state, now) {
		return
	}
	if err := a.store.putState(ctx, id, a.Configured(id), state, text, now); err != nil {
		a.log.WarnContext(ctx, "state of an account not noted", "account", id, "state", state, "error", err)
		a.mu.Lock()
		delete(a.outcomes, id)
		a.mu.Unlock()
	}
}

// stateOf decides what the end of an attempt says about the account; empty: nothing.
func stateOf(err error) (state, text string) {
	if err == nil {
		return stateConnected, ""
	}
	if e, ok := errors.AsType[*smtpsend.Error](err); ok {
		switch e.Scope {
		case smtpsend.ScopeRecipient, smtpsend.ScopeMessage, smtpsend.ScopeDestination:
			if e.Code != 0 {
				return stateConnected, ""
			}
			return "", ""
		}
	}
	if errors.Is(err, context.Canceled) {
		return "", ""
	}
	return stateError, printable(err.Error())
}

// maxOutcomes bounds what is remembered of accounts' states; beyond it remembering starts over.
const maxOutcomes = 10_000

// worthWriting reports whether a state has to be written, and assumes that it then is.
func (a *Accounts) worthWriting(id, state string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.outcomes[id]
	if last.state == state && now.Sub(last.written) < rewriteAfter {
		return false
	}
	if len(a.outcomes) >= maxOutcomes {
		clear(a.outcomes)
	}
	a.outcomes[id] = outcome{state: state, written: now}
	return true
}

// forget drops what is remembered of accounts after a change made here.
func (a *Accounts) forget(id string) {
	a.senders.Clear()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.outcomes, id)
}

// forgetOutcomes lets each state be written anew: a changed account begins unset.
func (a *Accounts) forgetOutcomes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.outcomes)
}

// printable makes text of a relay fit for one line on a page.
func printable(s string) string {
	s = strings.ToValidUTF8(s, "?")
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "")
	}
	return s
}
