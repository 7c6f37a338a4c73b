package smtpsend

import (
	"context"
	"time"
)

// window is the most commands that may be unanswered with PIPELINING (RFC 2920). More could fill the buffers
// of both directions, and each side would wait for the other to read.
const window = 100

// envelope sends MAIL, RCPT and DATA: in one piece with PIPELINING, else one by one.
func (t *transaction) envelope(ctx context.Context) {
	if t.c.needReset {
		t.c.needReset = false
		t.say(func(reply) {}, "RSET")
	}
	if t.c.ext.pipelining && t.fitsGroup() {
		t.together()
	} else {
		t.apart(ctx)
	}
	t.conclude(ctx)
}

// fitsGroup reports whether the envelope, with a dot and RSET before it, fits into one window.
func (t *transaction) fitsGroup() bool { return len(t.to)+4 <= window }

// together queues the whole envelope.
func (t *transaction) together() {
	t.say(t.onMail, t.mailCommand())
	for _, i := range t.to {
		t.sayRcpt(i)
	}
	t.say(t.onData, "DATA")
}

// apart sends the envelope command by command, or window by window, and stops at a failure.
func (t *transaction) apart(ctx context.Context) {
	begun := time.Now()
	times := &t.d.result.Timings
	t.turn(ctx)
	if t.failure != nil {
		return
	}
	t.say(t.onMail, t.mailCommand())
	t.turn(ctx)
	times.Mail += lap(&begun)
	for _, i := range t.to {
		if t.failure != nil {
			return
		}
		t.sayRcpt(i)
		t.turn(ctx)
	}
	times.Rcpt += lap(&begun)
	if t.failure == nil && (t.c.ext.pipelining || len(t.accepted) > 0) {
		t.say(t.onData, "DATA")
	}
}

func (t *transaction) sayRcpt(i int) {
	path := t.d.paths[i]
	t.say(func(r reply) { t.onRcpt(i, r) }, "RCPT TO:<", path, ">", t.reports(path))
}

func (t *transaction) say(on func(reply), parts ...string) {
	t.d.record.said(parts...)
	t.c.queue(parts...)
	t.pending = append(t.pending, on)
}

// turn reads the replies due: after each command without PIPELINING, else when the window is full.
func (t *transaction) turn(ctx context.Context) {
	if !t.c.ext.pipelining || len(t.pending) >= window {
		t.settle(ctx)
	}
}

func (t *transaction) onMail(r reply) {
	if r.positive() {
		t.mail = true
		return
	}
	t.failure = t.refused(PhaseMail, "MAIL FROM", r, len(t.to))
	if aboutConnection(r.code) {
		t.c.botched = true // the two sides disagree about the state
	}
}

func (t *transaction) onData(r reply) { t.data = r }

// onRcpt takes the reply to one RCPT. Replies that only follow from a refused MAIL say nothing.
func (t *transaction) onRcpt(i int, r reply) {
	if !t.mail {
		return
	}
	if r.positive() {
		t.accepted = append(t.accepted, i)
		return
	}
	e := t.refused(PhaseRcpt, "RCPT TO", r, 1)
	if e.NewTransaction && len(t.accepted) > 0 {
		t.next = append(t.next, i)
		return
	}
	t.d.result.Recipients[i].Err = e
	t.d.result.Recipients[i].Response = e.Line
	t.d.result.Response, t.d.result.Code = e.Line, e.Code
}

// conclude waits for the replies due. t.failure is nil if the content may follow.
func (t *transaction) conclude(ctx context.Context) {
	begun := time.Now()
	t.settle(ctx)
	t.d.result.Timings.Data += lap(&begun)
	if t.c.botched {
		return
	}
	nobody, ready := len(t.accepted) == 0, t.data.intermediate()
	if nobody && t.failure == nil {
		t.failure = t.d.result.Recipients[t.to[len(t.to)-1]].Err
	}
	switch {
	case nobody && ready:
		// DATA was sent along with recipients that were all refused: a dot ends the content (RFC 2920 section 3.1).
		t.d.record.said(".")
		r, err := t.c.ask(t.d.s.o.Timeout, ".")
		if t.c.botched = err != nil; err == nil {
			t.d.record.heard(r)
		}
	case t.failure != nil:
		t.c.needReset = t.mail
	case !ready:
		t.c.needReset = true
		t.failure = t.refused(PhaseData, "DATA", t.data, len(t.accepted))
		t.c.botched = t.data.positive()
	}
}
