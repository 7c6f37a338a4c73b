package smtpsend

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Phase is where in the conversation something happened.
type Phase string

// The phases in the order in which a conversation passes them.
const (
	PhaseCheck    Phase = "check"    // before any connection: the message or the settings themselves
	PhaseDNS      Phase = "dns"      // looking the relay's name up
	PhaseConnect  Phase = "connect"  // TCP, and waiting for a free connection
	PhaseTLS      Phase = "tls"      // handshake, implicit or after STARTTLS
	PhaseGreeting Phase = "greeting" // the relay's first line
	PhaseEHLO     Phase = "ehlo"
	PhaseSTARTTLS Phase = "starttls"
	PhaseAuth     Phase = "auth"
	PhaseMail     Phase = "mail"
	PhaseRcpt     Phase = "rcpt"
	PhaseData     Phase = "data" // DATA up to the 354
	PhaseBody     Phase = "body" // writing the content, before the dot
	PhaseDot      Phase = "dot"  // the terminating dot and its reply
)

// Verdict says what a failure means for the recipient.
type Verdict string

// The verdicts. Soft and Throttle are worth another attempt with the same bytes, the others are not
// (Error.Permanent).
const (
	Hard     Verdict = "hard"     // this recipient, for good
	Soft     Verdict = "soft"     // transient
	Throttle Verdict = "throttle" // transient: we are too fast, or out of quota
	Policy   Verdict = "policy"   // this message or sender is not wanted, for good
	// the account: credentials, token, certificate, unverified identity, suspended plan
	Auth  Verdict = "auth"
	Block Verdict = "block" // the reputation of our address or domain
)

// Scope says what a failure is about, and so what has to wait or be held.
type Scope string

// The scopes.
const (
	ScopeRecipient   Scope = "recipient"
	ScopeMessage     Scope = "message"
	ScopeConnection  Scope = "connection"
	ScopeAccount     Scope = "account"
	ScopeDestination Scope = "destination" // the recipient's domain, or the network we send from as it sees us
)

// Error is one failure: where it happened, what the relay said, and what it means.
type Error struct {
	Phase    Phase
	Command  string  // the command it answers, such as "RCPT TO"; empty without
	Code     int     // reply code; 0: there was no reply
	Enhanced string  // enhanced code that agrees with Code, such as "5.1.1"; empty without
	Line     string  // the reply as one line, made printable and cut at 1,000 bytes; empty without reply
	Verdict  Verdict // never empty
	Scope    Scope   // never empty
	Suppress bool    // the address itself is invalid or gone: better not written to again
	InDoubt  bool    // the dot was written and not answered: the message may have been delivered
	Err      error   // the cause when there was no reply

	RetryAfter time.Duration // wait the relay asked for; 0: none
	Reconnect  bool          // the connection was the trouble (session limit); a new one may be used at once
	// only the transaction was full; the recipient may follow in the next one at once
	NewTransaction bool

	name string
}

// Error tells the failure in one line, without credentials and without the recipients' addresses unless the
// relay's own words contain them.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("smtp ")
	b.WriteString(string(e.Phase))
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Line != "" {
		b.WriteString(": " + e.Line)
	}
	if e.InDoubt {
		b.WriteString(" (delivery in doubt)")
	}
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Permanent reports whether another attempt with the same bytes is pointless.
func (e *Error) Permanent() bool { return e.Verdict != Soft && e.Verdict != Throttle }

// Elsewhere reports whether another relay may do better: this one was not reached, did not let us in, or
// would not take mail from us now, and has not judged the message or a recipient. It is never true when the
// message may have been delivered.
func (e *Error) Elsewhere() bool {
	ours := e.Scope == ScopeAccount || e.Scope == ScopeConnection
	switch e.Phase {
	case PhaseDNS, PhaseConnect, PhaseTLS, PhaseGreeting, PhaseEHLO, PhaseSTARTTLS, PhaseAuth:
		return !e.InDoubt && e.Scope != ScopeRecipient && e.Scope != ScopeMessage
	case PhaseCheck: // settings that cannot work
		return e.Scope == ScopeAccount
	case PhaseMail:
		return ours && (e.Verdict == Soft || e.Verdict == Throttle || e.Verdict == Auth)
	}
	return false
}

// Timeout reports whether a wait ended the conversation.
func (e *Error) Timeout() bool { return e.Name() == nameTimeout }

// The names EmailEngine's webhooks carry as errorCode. Nodemailer coined them.
const (
	nameAuth       = "EAUTH"
	nameNoAuth     = "ENOAUTH"
	nameTLS        = "ETLS"
	nameEnvelope   = "EENVELOPE"
	nameMessage    = "EMESSAGE"
	nameProtocol   = "EPROTOCOL"
	nameSocket     = "ESOCKET"
	nameConnection = "ECONNECTION"
	nameTimeout    = "ETIMEDOUT"
	nameDNS        = "EDNS"
)

// Name is the failure's name in EmailEngine's vocabulary: EAUTH, ENOAUTH, EOAUTH2, ETLS, EENVELOPE, EMESSAGE,
// EPROTOCOL, ESOCKET, ECONNECTION, ETIMEDOUT or EDNS.
func (e *Error) Name() string {
	if e.name != "" {
		return e.name
	}
	return phaseName(e.Phase, e.Code)
}

// phaseName is the name of a failure of which only the phase and the reply are known.
func phaseName(p Phase, code int) string {
	switch p {
	case PhaseCheck, PhaseMail, PhaseRcpt, PhaseData:
		switch {
		case code == 421:
			return nameConnection
		case p == PhaseMail && code == 530:
			return nameAuth
		case p == PhaseMail && code == 552:
			return nameMessage
		}
		return nameEnvelope
	case PhaseBody, PhaseDot:
		return nameMessage
	case PhaseAuth:
		return nameAuth
	case PhaseTLS, PhaseSTARTTLS:
		return nameTLS
	case PhaseDNS:
		return nameDNS
	case PhaseConnect:
		return nameSocket
	default:
		if code == 421 {
			return nameConnection
		}
		return nameProtocol
	}
}

// envelopeError refuses a message for its addresses, before any connection.
func envelopeError(what string, cause error) *Error {
	return &Error{Phase: PhaseCheck, Verdict: Policy, Scope: ScopeMessage, Err: because(what, cause),
		name: nameEnvelope}
}

// messageError refuses a message for its content, before any connection.
func messageError(what string, cause error) *Error {
	return &Error{Phase: PhaseCheck, Verdict: Policy, Scope: ScopeMessage, Err: because(what, cause),
		name: nameMessage}
}

func because(what string, cause error) error {
	if cause == nil {
		return errors.New(what)
	}
	return fmt.Errorf("%s: %w", what, cause)
}
