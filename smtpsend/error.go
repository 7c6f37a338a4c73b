package smtpsend

import (
	"cmp"
	"fmt"
	"time"
)

// Phase is a part of the SMTP conversation.
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

// Verdict is what a failure means for the recipient.
type Verdict string

// The verdicts. Soft and Throttle are worth another attempt with the same bytes, the others are not
// (Error.Permanent).
const (
	Hard     Verdict = "hard"     // this recipient, permanently
	Soft     Verdict = "soft"     // transient
	Throttle Verdict = "throttle" // transient: too fast, or out of quota
	Policy   Verdict = "policy"   // this message or sender is not wanted, permanently
	// the account: credentials, token, certificate, unverified identity, suspended plan
	Auth  Verdict = "auth"
	Block Verdict = "block" // the reputation of our address or domain
)

// AboutAddress reports whether a failure is about the recipient's mailbox or its server, so that repeated
// ones count against the address. The others are about the sender, its rate, or the message.
func (v Verdict) AboutAddress() bool { return v == Hard || v == Soft }

// Scope is what a failure is about, and so what has to wait or be held.
type Scope string

// The scopes.
const (
	ScopeRecipient  Scope = "recipient"
	ScopeMessage    Scope = "message"
	ScopeConnection Scope = "connection"
	ScopeAccount    Scope = "account"
	// the network that the message was offered to: the recipient's domain, its view of our network, or the
	// relay's
	ScopeDestination Scope = "destination"
	ScopeDomain      Scope = "domain" // the recipient's domain, whoever says so
)

// Error is one failure: its phase, the relay's reply, and its meaning.
type Error struct {
	Phase    Phase
	Command  string  // the command it answers, such as "RCPT TO"; empty without
	Code     int     // reply code; 0 if there was no reply
	Enhanced string  // enhanced code that agrees with Code, such as "5.1.1"; empty without
	Line     string  // the reply as one line, made printable and cut at 1,000 bytes; empty without reply
	Verdict  Verdict // never empty
	Scope    Scope   // never empty
	Suppress bool    // the address is invalid or gone: suppress it
	InDoubt  bool    // the dot was written and not answered: the message may have been delivered
	Err      error   // the cause when there was no reply

	RetryAfter time.Duration // wait the relay asked for; 0 if none
	Reconnect  bool          // the connection was the cause (session limit); a new one may be used immediately
	// only the transaction was full; the recipient may follow in the next one immediately
	NewTransaction bool

	// A provider's API; empty over SMTP. Code, Enhanced and Phase are then the equivalents in SMTP.
	Protocol string // "http"
	Status   int    // of HTTP; 0 if there was no answer
	Reason   string // the provider's own code or word for it, or empty
	// how long the provider remembers the key of a request in doubt: until then the same request, with the same
	// Labels.Answered, delivers the message once; 0 if it has none
	Remembered time.Duration

	name string
}

// Error describes the failure in one line. It has no credentials. It has recipients' addresses only if the
// relay's reply does.
func (e *Error) Error() string {
	text := cmp.Or(e.Protocol, "smtp") + " " + string(e.Phase)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.Line != "" {
		text += ": " + e.Line
	}
	if e.InDoubt {
		text += " (delivery in doubt)"
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Permanent reports whether another attempt with the same bytes is pointless.
func (e *Error) Permanent() bool { return e.Verdict != Soft && e.Verdict != Throttle }

// Elsewhere reports whether another relay may do better: this one was not reached, refused the login, or
// takes no mail now, and has not judged the message or a recipient. It is false if the message may have been
// delivered.
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

// Uncarried is the error for a message that a gateway can't carry, whatever its recipients or the gateway's
// state: it is too large, or has parts that the gateway would change. Another gateway may carry it.
func Uncarried(format string, args ...any) *Error {
	return newError(PhaseCheck, Policy, ScopeAccount, nameMessage, fmt.Errorf(format, args...))
}

// Uncarried reports whether the gateway can't carry the message.
func (e *Error) Uncarried() bool {
	return e.Phase == PhaseCheck && e.Verdict == Policy && e.Scope == ScopeAccount
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
	nameOAuth2     = "EOAUTH2"
)

// Name returns the failure's name in EmailEngine's vocabulary: EAUTH, ENOAUTH, EOAUTH2, ETLS, EENVELOPE,
// EMESSAGE, EPROTOCOL, ESOCKET, ECONNECTION, ETIMEDOUT or EDNS.
func (e *Error) Name() string {
	p, mail := e.Phase, e.Phase == PhaseMail
	switch {
	case e.name != "":
		return e.name
	case p == PhaseAuth, mail && e.Code == 530:
		return nameAuth
	case p == PhaseBody, p == PhaseDot, mail && e.Code == 552:
		return nameMessage
	case p == PhaseTLS, p == PhaseSTARTTLS:
		return nameTLS
	case p == PhaseDNS:
		return nameDNS
	case p == PhaseConnect:
		return nameSocket
	case e.Code == 421:
		return nameConnection
	case p == PhaseCheck, mail, p == PhaseRcpt, p == PhaseData:
		return nameEnvelope
	}
	return nameProtocol
}

// Advice returns what to do about a failure of this name, see [Error.Name]; empty for an empty name.
func Advice(name string) string {
	switch name {
	case "":
		return ""
	case "EAUTH", "ENOAUTH":
		return "check user and password; many providers want a password made for programs"
	case "ETLS":
		return "use the name that stands in the relay's certificate; smtps:// or TLS from the first byte goes " +
			"with port 465, smtp:// or STARTTLS with 587"
	case "EDNS":
		return "check the host, and the DNS of this machine"
	case "ESOCKET", "ECONNECTION", "ETIMEDOUT":
		return "check host and port, and the firewall; many networks block port 25, try 587 or 465"
	}
	return "ask the operator of the relay, with the reply above"
}

// newError returns a failure without a reply.
func newError(p Phase, v Verdict, s Scope, name string, err error) *Error {
	return &Error{Phase: p, Verdict: v, Scope: s, Err: err, name: name}
}

// refusal is a message that is refused before any connection: for its addresses (EENVELOPE) or its content
// (EMESSAGE).
func refusal(name, format string, args ...any) *Error {
	return newError(PhaseCheck, Policy, ScopeMessage, name, fmt.Errorf(format, args...))
}
