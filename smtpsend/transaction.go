package smtpsend

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// transaction is one MAIL, RCPT…, DATA, content and dot.
type transaction struct {
	d  *delivery
	c  *session
	to []int // recipients, as indexes into d.result.Recipients

	pending  []func(reply) // the handlers of the replies still to come, in order
	mail     bool          // MAIL was accepted
	answered bool          // a reply has come
	accepted []int
	next     []int // recipients for the next transaction
	data     reply // to DATA

	ahead    bool    // the envelope left with the dot of the message before
	follower *waiter // whose envelope left with this one's dot, or nil
	stale    bool    // the connection was used before and died before answering: nothing was seen
	failure  *Error  // of the transaction as a whole
}

// newTransaction prepares a transaction for as many recipients as one may have.
func newTransaction(d *delivery, c *session) *transaction {
	limit := d.relay.RecipientsPerTransaction
	if c.ext.maxRecipients > 0 {
		limit = min(limit, c.ext.maxRecipients)
	}
	if d.from != nil {
		limit = 1
	}
	return &transaction{d: d, c: c, to: d.rest[:min(limit, len(d.rest))]}
}

// run has the whole conversation. Every recipient of t.to ends with an answer in the result, or in t.next. If
// t.stale, nothing is changed.
func (t *transaction) run(ctx context.Context) {
	reused := t.c.served > 0
	t.c.served++
	if t.ahead {
		t.conclude(ctx)
	} else if t.failure = t.fits(); t.failure == nil {
		t.envelope(ctx)
	}
	if t.failure != nil && reused && !t.answeredMail() && ctx.Err() == nil {
		t.stale = true
		return
	}
	if t.failure == nil && len(t.accepted) > 0 {
		t.failure = t.content(ctx)
	}
	if t.failure != nil {
		t.fail()
	}
}

// answeredMail reports whether the relay's answer was about the message. A 421, 500, 502 or 503 to MAIL is
// about the connection, which was idle too long or in an unexpected state; so is a reply with Reconnect. Then
// the message is sent over a new connection. Not after a throttle: a new connection would make it worse.
func (t *transaction) answeredMail() bool {
	if !t.answered {
		return t.failure.Phase == PhaseCheck
	}
	if t.failure.Phase != PhaseMail || t.failure.Verdict == Throttle {
		return true
	}
	return !t.failure.Reconnect && !aboutConnection(t.failure.Code)
}

// refused is the failure that a refused command means. After a reply with Reconnect the connection takes no
// further message.
func (t *transaction) refused(p Phase, command string, r reply, recipients int) *Error {
	e := t.d.s.replyError(p, command, r, recipients)
	if e.Reconnect {
		t.c.expires = time.Time{}
	}
	return e
}

func aboutConnection(code int) bool { return code == 421 || code == 500 || code == 502 || code == 503 }

// fits refuses a message that exceeds what the relay offered.
func (t *transaction) fits() *Error {
	d, ext := t.d, &t.c.ext
	var e *Error
	switch {
	case ext.maxSize > 0 && d.size > ext.maxSize:
		e = refusal(nameMessage, "the message has %d bytes and the relay takes %d", d.size, ext.maxSize)
		e.Command = "MAIL FROM"
	case d.utf8 && !ext.utf8:
		e = refusal(nameEnvelope, "the message needs SMTPUTF8, which the relay does not offer")
	case d.m.RequireTLS && (t.c.tls == "" || !t.c.verified || !ext.requireTLS):
		e = refusal(nameMessage,
			"the message requires REQUIRETLS, which the relay does not offer over verified TLS")
	case d.m.EightBit && !ext.eightBit:
		e = refusal(nameMessage, "the message needs 8BITMIME, which the relay does not offer")
	default:
		return nil
	}
	return d.s.silent(e)
}

// settle writes queued commands and reads every reply due, even when the outcome is clear already: an unread
// reply would be taken for the answer to a later command.
func (t *transaction) settle(ctx context.Context) {
	if len(t.pending) == 0 {
		return
	}
	err := t.c.flush(t.d.s.o.Timeout)
	for _, on := range t.pending {
		limit := t.d.s.o.Timeout
		if err != nil { // the relay may have written why
			limit = min(limit, lastReplyTimeout)
		}
		r, readErr := t.c.read(limit)
		if readErr != nil {
			t.suspect(ctx)
			t.breakOff(t.d.s.ioError(ctx, t.phase(), "", cmp.Or(err, readErr)))
			return
		}
		t.answered = true
		t.d.record.heard(r)
		on(r)
		if r.code == 421 || r.intermediate() && !t.data.intermediate() {
			t.breakOff(t.d.s.replyError(t.phase(), "", r, len(t.to)))
			return
		}
	}
	t.pending = t.pending[:0]
	if err != nil {
		t.breakOff(t.d.s.ioError(ctx, t.phase(), "", err))
	}
}

// suspect remembers a relay that answered fewer commands than were sent together. An idle connection may end
// before any answer, so it proves nothing.
func (t *transaction) suspect(ctx context.Context) {
	s := t.c.sender
	if len(t.pending) > 1 && ctx.Err() == nil && (t.answered || t.c.served == 1) &&
		s.losers.note(t.c.relay, time.Now()) {
		s.o.Logger.WarnContext(ctx, "relay lost pipelined commands: it gets one at a time from now on", "relay",
			t.c.relay.String(), "for", losesFor)
	}
}

// lastReplyTimeout is the wait for a reply that may explain why a write failed.
const lastReplyTimeout = 2 * time.Second

// breakOff ends the conversation: the connection's state is unknown. An earlier failure stands.
func (t *transaction) breakOff(e *Error) {
	t.c.botched = true
	t.pending = nil
	if t.failure == nil {
		t.failure = e
	}
}

// phase is the part of the envelope that is being answered.
func (t *transaction) phase() Phase {
	if !t.mail {
		return PhaseMail
	}
	answered := len(t.accepted) + len(t.next)
	for _, i := range t.to {
		if t.d.result.Recipients[i].Err != nil {
			answered++
		}
	}
	if answered < len(t.to) {
		return PhaseRcpt
	}
	return PhaseData
}

// fail gives the transaction's failure to every recipient without an answer.
func (t *transaction) fail() {
	d := t.d
	undecided := *t.failure
	undecided.InDoubt, undecided.Suppress = false, false
	for _, i := range t.to {
		r := &d.result.Recipients[i]
		if r.Err != nil || slices.Contains(t.next, i) {
			continue
		}
		r.Err, r.Response = &undecided, t.failure.Line
		if slices.Contains(t.accepted, i) {
			r.Err = t.failure
		}
	}
	if t.failure.Line != "" {
		d.result.Response, d.result.Code = t.failure.Line, t.failure.Code
	}
}

func splitAddress(a string) (local, domain string) {
	at := strings.LastIndexByte(a, '@')
	return a[:at], a[at+1:]
}

// lap returns the time since *t and sets *t to now.
func lap(t *time.Time) time.Duration {
	now := time.Now()
	d := now.Sub(*t)
	*t = now
	return d
}

// ErrAborted is the cause when BeforeDot or AtDot failed.
var ErrAborted = errors.New(
	"not sent: the caller could not record that the message was about to be delivered")
