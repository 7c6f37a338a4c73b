package smtpsend

import (
	"errors"
	"time"
)

// RecipientResult is the result for one recipient.
type RecipientResult struct {
	Address string
	// the relay's last reply about it: to the dot when delivered, else the refusal; empty without any
	Response string
	// the provider that took it, such as "ses", and its id of the message, if known. Filled in by package
	// routing over SMTP, where the reply has the id
	Provider, ProviderID string
	Err                  *Error // nil if the relay took responsibility for this recipient
}

// Result is the result of a whole message. It lists every recipient in the order of Message.To.
type Result struct {
	Recipients    []RecipientResult
	Response      string // reply to the last dot that was answered, or the last refusal
	Code          int    // code of Response; 0 without
	RemoteName    string // name the relay greeted with
	RemoteAddress string // IP address and port of the relay, or of the proxy on the way to it
	TLS           string // such as "TLS 1.3"; empty if the message went in clear
	Reused        bool   // the connection had served a message before
	TLSFailed     *Error // why the message went in clear although the relay offers TLS; nil if it didn't
	Timings       Timings

	// Dialogue is an excerpt of the dialogue, if a recipient did not get the message and a relay was dialed. It
	// has the first and last lines, at most about 20 lines and 2 kB. It names recipients. It has neither the
	// content nor credentials, and no text of a server that has not proven to be an SMTP server. It is empty if
	// every recipient got the message.
	Dialogue []DialogueLine
}

// Timings are the durations of each part of the conversation, summed over the transactions. A phase that did
// not happen is zero. With pipelining the answers to MAIL, RCPT and DATA arrive together, and Data holds the
// wait for all of them.
type Timings struct {
	Wait    time.Duration // for a free connection
	Connect time.Duration // look-up, TCP and greeting
	TLS     time.Duration // handshake
	Auth    time.Duration
	Mail    time.Duration
	Rcpt    time.Duration // all recipients
	Data    time.Duration // DATA to 354
	Body    time.Duration // writing the content, BeforeDot included
	Dot     time.Duration // from the dot to its reply
}

// Err returns the error of the whole message: nil if one recipient was delivered, else the failure that is
// most worth another attempt.
func (r *Result) Err() error {
	var worst *Error
	rejected := true
	for _, one := range r.Recipients {
		switch {
		case one.Err == nil:
			return nil
		case worst == nil, worst.Permanent() && !one.Err.Permanent(), !worst.InDoubt && one.Err.InDoubt:
			worst = one.Err
		}
		rejected = rejected && one.Err.Phase == PhaseRcpt && one.Err.Code != 0
	}
	if worst == nil {
		return refusal(nameEnvelope, "no recipients")
	}
	if rejected {
		all := *worst
		all.Err = errors.New("all recipients were rejected")
		return &all
	}
	return worst
}
