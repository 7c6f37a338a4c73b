package bounce

import (
	"cmp"
	"time"

	"github.com/postroom/postroom/smtpsend"
)

// Kind is the kind of an email.
type Kind string

// The kinds. An email about several recipients has the kind of the worst news in it: Bounced before Delayed
// before Delivered.
const (
	None       Kind = "none"       // none of the others is known
	Bounced    Kind = "bounced"    // at least one recipient will not get the message
	Delayed    Kind = "delayed"    // a relay is still trying
	Delivered  Kind = "delivered"  // it arrived, or went on to a server that does not report
	Complained Kind = "complained" // a feedback report; Report.Feedback has its type
	// out of office, no longer here, ticket opened: written by a program for a living address
	AutoReply Kind = "autoreply"
	Challenge Kind = "challenge" // the recipient's filter wants a person to confirm the message
)

// Action is the result for one recipient (RFC 3464 section 2.3.3).
type Action string

const (
	ActionFailed    Action = "failed"
	ActionDelayed   Action = "delayed"
	ActionDelivered Action = "delivered"
	ActionRelayed   Action = "relayed"  // passed to a relay that sends no notifications
	ActionExpanded  Action = "expanded" // passed to the members of a list
)

// Report is the content of an email that came back. Nothing in it is proven.
type Report struct {
	Kind Kind
	// how it was read: "dsn", "arf", "ses", or the name of a form in forms.tsv; empty for None
	Form string
	// in the order of the mail; an address may occur twice, for example if two others forward to it
	Recipients []Recipient
	Feedback   *Feedback // of Complained only
	Original   Original

	ReportingMTA string // name of the server that wrote it, if given
	// an address that looks like a return path of ours, if any. Package signedtoken reads it
	ReturnPath string
	Truncated  bool // the mail was longer, deeper, or had more recipients than the bounds
}

// Recipient is one address and the statements about it.
type Recipient struct {
	// the address that failed, in normal form where it has one; may be where mail was forwarded to
	Address    string
	Original   string // the address as the sender gave it (Original-Recipient); empty if not given
	Action     Action // empty for Complained, AutoReply and Challenge
	Status     string // RFC 3463, such as "5.1.1"; "5.0.0" if only the outcome is known. Empty where Action is
	Code       int    // code of the quoted SMTP reply; 0 if none
	Diagnostic string // the server's words, in one printable line of at most 1,000 bytes; empty if none
	RemoteMTA  string // the server that replied; empty if not given

	// Of ActionFailed and ActionDelayed, by smtpsend.Classify. Soft and Throttle with ActionFailed: the relay
	// gave up, Postroom may try again.
	Verdict  smtpsend.Verdict
	Scope    smtpsend.Scope
	Suppress bool // the address itself is invalid or gone. Never true unless Action is ActionFailed
}

// Feedback is a complaint (RFC 5965 section 3).
type Feedback struct {
	// Type is "abuse", "fraud", "virus", "opt-out", "not-spam", "auth-failure" or "other", in lower case. The
	// last three do not mean that the recipient rejects further mail. not-spam withdraws a complaint.
	// auth-failure is a receiver's report on DMARC (RFC 6591).
	Type         string
	UserAgent    string    // the program that wrote the report
	SourceIP     string    // sender of the mail complained of, as the receiver saw it
	MailFrom     string    // envelope sender of that email
	ArrivalDate  time.Time // zero if not given
	ReportedFor  []string  // domains
	ReportedURIs []string
}

// Original is the message that the mail is about.
type Original struct {
	// Message-ID of the returned headers, without angle brackets. Without returned headers: In-Reply-To of the
	// mail
	MessageID  string
	EnvelopeID string   // ENVID of the submission (RFC 3461); empty if none
	To         []string // addresses of the returned To header, in normal form; at most 20
}

// Options are the bounds of Read, and the facts that the listener knows. The zero value works.
type Options struct {
	MaxBytes      int       // bound of the bytes read; defaults to 1 MiB
	MaxRecipients int       // defaults to 100
	EnvelopeTo    string    // the envelope recipient; if empty, the header is read
	Now           time.Time // for replies that name a date; if zero, such dates are ignored
}

const (
	defaultMaxBytes      = 1 << 20
	defaultMaxRecipients = 100
	maxDiagnostic        = 1000
)

func (o Options) withDefaults() Options {
	o.MaxBytes = cmp.Or(max(o.MaxBytes, 0), defaultMaxBytes)
	o.MaxRecipients = cmp.Or(max(o.MaxRecipients, 0), defaultMaxRecipients)
	return o
}
