package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// window is how many commands may be on their way unanswered when the relay takes them in groups (RFC 2920). More could fill
// both directions' buffers and leave each side waiting for the other to read.
const window = 100

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

	stale   bool   // the connection was used before and died before answering: nothing was seen
	failure *Error // of the transaction as a whole
}

// run has the whole conversation. Every recipient of t.to ends with an answer in the result, in t.next, or, when t.stale, as it was.
func (t *transaction) run(ctx context.Context) {
	reused := t.c.served > 0
	t.c.served++
	if t.failure = t.fits(); t.failure == nil {
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

// answeredMail reports whether the relay has taken notice of the message. A 421 or 503 to the first command is about the
// connection, which was left idle or in a state we misjudged; a new one costs nobody anything. Too much haste it would only
// make worse.
func (t *transaction) answeredMail() bool {
	if !t.answered {
		return t.failure.Phase == PhaseCheck
	}
	return t.failure.Phase != PhaseMail || t.failure.Code != 421 && t.failure.Code != 503 || t.failure.Verdict == Throttle
}

// fits refuses what the relay said it will not take, before it is asked.
func (t *transaction) fits() *Error {
	d, ext := t.d, &t.c.ext
	size := int64(len(d.body) + 2)
	switch {
	case ext.maxSize > 0 && size > ext.maxSize:
		e := messageError(fmt.Sprintf("the message has %d bytes and the relay takes %d", size, ext.maxSize), nil)
		e.Command = "MAIL FROM"
		return t.d.s.silent(e)
	case d.utf8 && !ext.utf8:
		e := envelopeError("the message needs SMTPUTF8, which the relay does not offer", nil)
		return t.d.s.silent(e)
	case d.m.RequireTLS && (t.c.tls == "" || !t.c.verified || !ext.requireTLS):
		return t.d.s.silent(messageError("the message requires REQUIRETLS, which the relay does not offer over verified TLS", nil))
	case d.m.EightBit && !ext.eightBit:
		return t.d.s.silent(messageError("the message needs 8BITMIME, which the relay does not offer", nil))
	}
	return nil
}

// envelope says MAIL, RCPT and DATA: in one piece where the relay takes commands in groups, else one by one.
func (t *transaction) envelope(ctx context.Context) {
	begun := time.Now()
	times := &t.d.result.Timings
	if t.c.needReset {
		t.c.needReset = false
		t.say(ctx, func(reply) {}, "RSET")
	}
	t.say(ctx, t.onMail, t.mailCommand())
	times.Mail += lap(&begun)
	for _, i := range t.to {
		if t.failure != nil {
			break
		}
		t.say(ctx, func(r reply) { t.onRcpt(i, r) }, "RCPT TO:<", t.d.paths[i], ">", t.reports(t.d.paths[i]))
	}
	if !t.c.ext.pipelining {
		times.Rcpt += lap(&begun)
	}
	if t.failure == nil && (t.c.ext.pipelining || len(t.accepted) > 0) {
		t.say(ctx, func(r reply) { t.data = r }, "DATA")
	}
	t.settle(ctx)
	times.Data += lap(&begun)
	t.concludeEnvelope(ctx)
}

// say queues a command. Without pipelining, or with the window full, it waits for the answers due.
func (t *transaction) say(ctx context.Context, on func(reply), parts ...string) {
	if t.failure != nil && t.failure.Code == 0 {
		return
	}
	t.c.queue(parts...)
	t.pending = append(t.pending, on)
	if !t.c.ext.pipelining || len(t.pending) >= window {
		t.settle(ctx)
	}
}

// settle writes what is queued and reads every reply due. A reply must be read even when the outcome is clear already: it
// would be taken for the answer to a later command.
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
		if r.code == 421 {
			t.c.botched = true
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

// onMail takes the reply to MAIL.
func (t *transaction) onMail(r reply) {
	if r.positive() {
		t.mail = true
		return
	}
	t.failure = t.d.s.replyError(PhaseMail, "MAIL FROM", r, len(t.to))
	if r.code == 503 {
		t.c.botched = true // we and the relay disagree about where we are
	}
}

// onRcpt takes the reply to one RCPT. Replies that only follow from a refused MAIL say nothing.
func (t *transaction) onRcpt(i int, r reply) {
	if !t.mail {
		return
	}
	if r.positive() {
		t.accepted = append(t.accepted, i)
		return
	}
	e := t.d.s.replyError(PhaseRcpt, "RCPT TO", r, 1)
	if e.NewTransaction && len(t.accepted) > 0 {
		t.next = append(t.next, i)
		return
	}
	t.d.result.Recipients[i].Err = e
	t.d.result.Recipients[i].Response = e.Line
	t.d.result.Response, t.d.result.Code = e.Line, e.Code
}

// concludeEnvelope decides whether the content follows.
func (t *transaction) concludeEnvelope(ctx context.Context) {
	if t.c.botched {
		return
	}
	if t.data.intermediate() && len(t.accepted) == 0 {
		t.loneDot(ctx)
		return
	}
	if t.failure != nil || len(t.accepted) == 0 {
		t.c.needReset = t.mail
		if t.failure == nil {
			t.failure = t.d.allRejected(t.to)
		}
		return
	}
	if !t.data.intermediate() {
		t.c.needReset = true
		t.failure = t.d.s.replyError(PhaseData, "DATA", t.data, len(t.accepted))
		if t.data.positive() {
			t.c.botched = true
			t.failure.Verdict, t.failure.name = Soft, nameProtocol
		}
	}
}

// loneDot ends content that goes to nobody: DATA was sent along with recipients that were all refused (RFC 2920 section 3.1).
func (t *transaction) loneDot(ctx context.Context) {
	if t.failure == nil {
		t.failure = t.d.allRejected(t.to)
	}
	if _, err := t.c.ask(t.d.s.timeout, "."); err != nil {
		t.c.botched = true
	}
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
var errAborted = errors.New("not sent: the caller could not record that the message was about to be delivered")
