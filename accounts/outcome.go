package accounts

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/event"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/smtpsend"
)

// What an attempt can say about the account. The states of an account are these but trouble, which shows as
// an error or a hold.
const (
	stateUnset     = "unset"     // no attempt yet, or none since the account was changed
	stateConnected = "connected" // the relay was reached and let us in
	stateError     = "error"     // it was not, or did not; lastError says why
	stateHeld      = "held"      // it refused the account, whose mail waits
	metTrouble     = "trouble"   // it refused the account's login, token, certificate or sender
)

// rewriteAfter is how often a state is written again that did not change: for its time, and in case another
// process saw another one.
const rewriteAfter = time.Minute

// settling is for how long after a refused login messages may still pass over connections that logged in
// before it: such a success ends no hold, and the next refusal of the same kind is the same trouble still.
const settling = 5 * time.Second

// outcome is what was last written of an account's state.
type outcome struct {
	state   string
	written time.Time
}

// met is what an attempt says about an account; no state: nothing.
type met struct {
	state string
	text  string // of an error
	kind  string // of trouble: the code of the error
	line  string // the event of trouble, for the stream
}

// Outcome notes what an attempt through an account met; nil is success. A refused recipient or message is no
// trouble of the account: the relay was there and let us in. Trouble is an *smtpsend.Error of verdict auth,
// or a permanent *oauth.Error; [relays.Via] may have noted at which gateway. The first of its kind since mail
// last got through, or since the account was edited, makes one event, and holds the account if that is its
// way; a success ends both. Except for trouble, Outcome writes to Redis only when the state changed, or once
// a minute.
func (a *Accounts) Outcome(ctx context.Context, id string, err error) {
	now := a.now()
	m := metOf(err)
	if m.state == "" || !a.worthWriting(id, m.state, now) {
		return
	}
	e, lost := a.find(ctx, id)
	if fault.Is(lost, fault.NotFound) {
		return
	}
	if lost == nil && m.state == metTrouble {
		m.line, lost = troubleLine(id, err, e.sender.Hold, now)
	}
	said := ""
	if lost == nil {
		said, lost = a.met(ctx, id, a.fingerprintOf(id), m, e.sender.Hold, now)
	}
	if lost != nil {
		a.log.WarnContext(ctx, "state of an account not noted", "account", id, "state", m.state, "error", lost)
		a.remember(id, outcome{})
		return
	}
	switch said {
	case "ignored":
		a.remember(id, outcome{state: m.state, written: now.Add(settling - rewriteAfter)})
	case "trouble":
		a.senders.Clear()
		a.log.ErrorContext(ctx, "account refused", "account", id, "code", m.kind, "gateway",
			gateways.GatewayOf(err), "held", e.sender.Hold, "error", m.text)
	case "over":
		a.senders.Clear()
		a.log.InfoContext(ctx, "account held no longer", "account", id)
	}
}

// metOf decides what the end of an attempt says about the account.
func metOf(err error) met {
	if kind := troubleKind(err); kind != "" {
		return met{state: metTrouble, text: gateways.Printable(err.Error()), kind: kind}
	}
	state, text, _ := gateways.Met(err)
	return met{state: state, text: text}
}

// troubleKind names what is wrong with the account itself; empty: nothing that is known.
func troubleKind(err error) string {
	if e, ok := errors.AsType[*smtpsend.Error](err); ok {
		if e.Verdict == smtpsend.Auth {
			return e.Name()
		}
		return ""
	}
	if e, ok := errors.AsType[*oauth.Error](err); ok && e.Permanent {
		return "EOAUTH2"
	}
	return ""
}

// troubleLine writes the event of a trouble as it stands in the stream. Whether it goes there is up to the
// script.
func troubleLine(id string, err error, hold bool, now time.Time) (string, error) {
	data := event.Trouble{
		Failure: event.Failure{Error: gateways.Printable(err.Error()), ErrorCode: troubleKind(err)},
		Gateway: gateways.GatewayOf(err), Held: hold, Since: now.UTC().Truncate(time.Millisecond),
	}
	if e, ok := errors.AsType[*smtpsend.Error](err); ok {
		data.SMTPResponse, data.SMTPCommand = e.Line, e.Command
		if e.Code != 0 {
			data.SMTPResponseCode = &e.Code
		}
	}
	e, err := event.New(ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(), event.AccountError, id, now,
		data)
	if err != nil {
		return "", err
	}
	return e.Line()
}

// fingerprintOf tells which configured account an id is about; empty: a stored one, whose record tells.
func (a *Accounts) fingerprintOf(id string) string {
	if a.Configured(id) {
		return a.is
	}
	return ""
}

// maxOutcomes bounds what is remembered of accounts' states; beyond it remembering starts over.
const maxOutcomes = 10_000

// worthWriting reports whether a state has to be written, and assumes that it then is. Trouble always is: the
// script knows what is new.
func (a *Accounts) worthWriting(id, state string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.outcomes[id]
	if last.state == state && state != metTrouble && now.Sub(last.written) < rewriteAfter {
		return false
	}
	if len(a.outcomes) >= maxOutcomes {
		clear(a.outcomes)
	}
	a.outcomes[id] = outcome{state: state, written: now}
	return true
}

// remember replaces what is known of an account's state as written.
func (a *Accounts) remember(id string, o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcomes[id] = o
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
