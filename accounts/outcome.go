package accounts

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// The states of an account, and metTrouble, which is stored as error or held.
const (
	stateUnset     = "unset"     // no attempt yet, or none since the account was changed
	stateConnected = "connected" // the last attempt reached the relay and logged in
	stateError     = "error"     // it did not; lastError has the reason
	stateHeld      = "held"      // the account was refused, and its mail waits
	metTrouble     = "trouble"   // the account's login, token, certificate or sender was refused
)

// rewriteAfter is the interval at which an unchanged state is written again: to update its time, and in case
// another process wrote another state.
const rewriteAfter = time.Minute

// settling is the time after a refused login in which messages may still pass over older connections. Such a
// success ends no hold, and another refusal of the same kind is not a new one.
const settling = 5 * time.Second

// outcome is the last written state of an account.
type outcome struct {
	state   string
	written time.Time
}

// met is the result of an attempt for the state of the account.
type met struct {
	state string // empty if the attempt proves nothing
	text  string // an error's, like the next three
	code  string
	reply int
	cmd   string
	kind  string // the error's code, if it is about the account
	line  string // the event, for the stream, if it is about the account
}

// Outcome stores the result of an attempt through an account; nil is success. A refused recipient or message
// does not count against the account: the relay accepted the login. An *smtpsend.Error with verdict auth, or
// a permanent *oauth.Error, does; [gateways.Via] may have added the gateway. The first such error of its kind
// since mail got through, or since the account was edited, makes one event, and holds the account if it is
// set to hold. A success ends both. Except for such errors, Outcome writes to Redis only if the state
// changed, or once a minute.
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
		keys := []string{a.store.Key(id), a.store.StateKey(id), a.store.VersionKey(), eventsKey(), troubledKey()}
		args := stateArgs{ID: id, Result: m.state, ErrorText: m.text, Code: m.code, Reply: m.reply,
			Command: m.cmd, Now: now, Kind: m.kind, Event: m.line,
			Hold: e.sender.Hold, FirstCheck: checks[0].Milliseconds(), Settling: settling.Milliseconds()}
		if a.Configured(id) {
			args.Configured = a.is
		}
		said, lost = stateScript.Run(ctx, a.client, keys, args)
	}
	if lost != nil {
		a.log.WarnContext(ctx, "state of an account not stored", "account", id, "state", m.state, "error", lost)
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

// metOf returns the result of an attempt for the account.
func metOf(err error) met {
	var m met
	if kind := troubleKind(err); kind != "" {
		m = met{state: metTrouble, text: message.OneLine(err.Error(), gateways.MostErrorText), kind: kind,
			code: kind}
	} else {
		m.state, m.text, m.code = gateways.Met(err)
	}
	if e, ok := errors.AsType[*smtpsend.Error](err); ok && m.text != "" {
		m.reply, m.cmd = e.Code, e.Command
	}
	return m
}

// troubleKind returns the code of an error that is about the account itself, and "" for other errors.
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

// troubleLine returns an account error's event as it is written to the stream. The script decides whether to.
func troubleLine(id string, err error, hold bool, now time.Time) (string, error) {
	data := event.Trouble{
		Failure: event.Failure{Error: message.OneLine(err.Error(), gateways.MostErrorText),
			ErrorCode: troubleKind(err)},
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

// maxOutcomes bounds the cached outcomes; beyond it the cache is emptied.
const maxOutcomes = 10_000

// worthWriting reports whether a state has to be written, and records it as written. Account errors always
// have to be: the script decides whether they are new.
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

// remember replaces the last written state of an account.
func (a *Accounts) remember(id string, o outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcomes[id] = o
}

// forget drops an account's cached data, after a change by this process.
func (a *Accounts) forget(id string) {
	a.senders.Clear()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.outcomes, id)
}

// forgetOutcomes drops all outcomes, so each state is written again: a changed account begins unset.
func (a *Accounts) forgetOutcomes() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.outcomes)
}
