package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// transaction is one MAIL, RCPT…, DATA, content and dot.
type transaction struct {
	d  *delivery
	c  *session
	to []int // recipients, as indexes into d.result.Recipients

	pending  []func(reply) // what to do with the replies still to come, in order
	mail     bool          // MAIL was accepted
	answered bool          // a reply has come
	accepted []int
	next     []int // recipients for the next transaction
	data     reply // to DATA

	ahead    bool    // the envelope left with the dot of the message before
	follower *waiter // whose envelope left with this one's dot; nil: nobody's
	stale    bool    // the connection was used before and died before answering: nothing was seen
	failure  *Error  // of the transaction as a whole
}

// newTransaction prepares to send to as many of the message's recipients as one transaction takes.
func newTransaction(d *delivery, c *session) *transaction {
	limit := d.relay.RecipientsPerTransaction
	if c.ext.maxRecipients > 0 {
		limit = min(limit, c.ext.maxRecipients)
	}
	return &transaction{d: d, c: c, to: d.rest[:min(limit, len(d.rest))]}
}

// run has the whole conversation. Every recipient of t.to ends with an answer in the result, in t.next, or,
// when t.stale, as it was.
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

// answeredMail reports whether the relay has taken notice of the message. A 421 or 503 to the first command
// is about the connection, which was left idle or in a state we misjudged, and a relay that does not know
// MAIL all of a sudden answers something else; one that has had enough messages over this connection says so
// itself. A new connection costs nobody anything. Too much haste it would only make worse.
func (t *transaction) answeredMail() bool {
	if !t.answered {
		return t.failure.Phase == PhaseCheck
	}
	if t.failure.Phase != PhaseMail || t.failure.Verdict == Throttle {
		return true
	}
	return !t.failure.Reconnect && !aboutConnection(t.failure.Code)
}

// refused is what the relay means by refusing a command of this transaction. A connection it has had enough
// of takes no further message.
func (t *transaction) refused(p Phase, command string, r reply, recipients int) *Error {
	e := t.d.s.replyError(p, command, r, recipients)
	if e.Reconnect {
		t.c.retire()
	}
	return e
}

func aboutConnection(code int) bool { return code == 421 || code == 500 || code == 502 || code == 503 }

// fits refuses what the relay said it will not take, before it is asked.
func (t *transaction) fits() *Error {
	d, ext := t.d, &t.c.ext
	switch {
	case ext.maxSize > 0 && d.size > ext.maxSize:
		e := messageError(fmt.Sprintf("the message has %d bytes and the relay takes %d", d.size, ext.maxSize), nil)
		e.Command = "MAIL FROM"
		return t.d.s.silent(e)
	case d.utf8 && !ext.utf8:
		e := envelopeError("the message needs SMTPUTF8, which the relay does not offer", nil)
		return t.d.s.silent(e)
	case d.m.RequireTLS && (t.c.tls == "" || !t.c.verified || !ext.requireTLS):
		return t.d.s.silent(messageError(
			"the message requires REQUIRETLS, which the relay does not offer over verified TLS", nil))
	case d.m.EightBit && !ext.eightBit:
		return t.d.s.silent(messageError("the message needs 8BITMIME, which the relay does not offer", nil))
	}
	return nil
}

// settle writes what is queued and reads every reply due. A reply must be read even when the outcome is clear
// already: it would be taken for the answer to a later command.
func (t *transaction) settle(ctx context.Context) {
	if len(t.pending) == 0 {
		return
	}
	err := t.c.flush(t.d.s.timeout)
	for _, on := range t.pending {
		var r reply
		// After a failed write the relay may have told why; read on, but not for long.
		limit := t.d.s.timeout
		if err != nil {
			limit = min(limit, lastWords)
		}
		var readErr error
		if r, readErr = t.c.read(limit); readErr != nil {
			if err == nil {
				err = readErr
			}
			t.breakOff(t.d.s.ioError(ctx, t.phase(), "", err))
			return
		}
		t.answered = true
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

// lastWords is how long a reply is waited for that may explain why a write failed.
const lastWords = 2 * time.Second

// breakOff ends the conversation: the connection's state is unknown. A failure that was told before stands.
func (t *transaction) breakOff(e *Error) {
	t.c.botched = true
	t.pending = nil
	if t.failure == nil {
		t.failure = e
	}
}

// phase is how far the envelope has come, for errors that are no answer to one command.
func (t *transaction) phase() Phase {
	switch {
	case !t.mail:
		return PhaseMail
	case t.answeredRcpts() < len(t.to):
		return PhaseRcpt
	default:
		return PhaseData
	}
}

func (t *transaction) answeredRcpts() int {
	n := len(t.accepted) + len(t.next)
	for _, i := range t.to {
		if t.d.result.Recipients[i].Err != nil {
			n++
		}
	}
	return n
}

// allRejected is the failure of a transaction in which each recipient has its own.
func (d *delivery) allRejected(to []int) *Error {
	return d.result.Recipients[to[len(to)-1]].Err
}

// fail gives the transaction's failure to every recipient that has no answer of its own yet.
func (t *transaction) fail() {
	d := t.d
	accepted := map[int]bool{}
	for _, i := range t.accepted {
		accepted[i] = true
	}
	undecided := *t.failure
	undecided.InDoubt, undecided.Suppress = false, false
	for _, i := range t.to {
		r := &d.result.Recipients[i]
		switch {
		case r.Err != nil || slices.Contains(t.next, i):
			continue
		case accepted[i]:
			r.Err = t.failure
		default:
			r.Err = &undecided
		}
		r.Response = t.failure.Line
	}
	if t.failure.Line != "" {
		d.result.Response, d.result.Code = t.failure.Line, t.failure.Code
	}
}

func splitAddress(a string) (local, domain string) {
	at := strings.LastIndexByte(a, '@')
	return a[:at], a[at+1:]
}

// lap gives the time since *t and moves it to now.
func lap(t *time.Time) time.Duration {
	now := time.Now()
	d := now.Sub(*t)
	*t = now
	return d
}

// errAborted is the cause when BeforeDot said no.
var errAborted = errors.New(
	"not sent: the caller could not record that the message was about to be delivered")
