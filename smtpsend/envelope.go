package smtpsend

import (
	"context"
	"time"
)

// window is how many commands may be on their way unanswered when the relay takes them in groups (RFC 2920).
// More could fill both directions' buffers and leave each side waiting for the other to read.
const window = 100

// envelope says MAIL, RCPT and DATA: in one piece where the relay takes commands in groups, else one by one.
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

// fitsGroup reports whether the envelope, and a dot and RSET before it, fit into one window.
func (t *transaction) fitsGroup() bool { return len(t.to)+4 <= window }

// together queues the whole envelope.
func (t *transaction) together() {
	t.say(t.onMail, t.mailCommand())
	for _, i := range t.to {
		t.sayRcpt(i)
	}
	t.say(t.onData, "DATA")
}

// apart says the envelope command by command, or window by window, and stops where going on is pointless.
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

// say queues a command.
func (t *transaction) say(on func(reply), parts ...string) {
	t.c.queue(parts...)
	t.pending = append(t.pending, on)
}

// turn lets the relay speak when it must: after each command without pipelining, else with the window full.
func (t *transaction) turn(ctx context.Context) {
	if !t.c.ext.pipelining || len(t.pending) >= window {
		t.settle(ctx)
	}
}

// conclude waits for the answers due and decides whether the content follows.
func (t *transaction) conclude(ctx context.Context) {
	begun := time.Now()
	t.settle(ctx)
	t.d.result.Timings.Data += lap(&begun)
	t.concludeEnvelope(ctx)
}

// onMail takes the reply to MAIL.
func (t *transaction) onMail(r reply) {
	if r.positive() {
		t.mail = true
		return
	}
	t.failure = t.refused(PhaseMail, "MAIL FROM", r, len(t.to))
	if aboutConnection(r.code) {
		t.c.botched = true // we and the relay disagree about where we are
	}
}

// onData takes the reply to DATA.
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
		t.failure = t.refused(PhaseData, "DATA", t.data, len(t.accepted))
		t.c.botched = t.data.positive()
	}
}

// loneDot ends content that goes to nobody: DATA was sent along with recipients that were all refused (RFC
// 2920 section 3.1).
func (t *transaction) loneDot(ctx context.Context) {
	if t.failure == nil {
		t.failure = t.d.allRejected(t.to)
	}
	if _, err := t.c.ask(t.d.s.timeout, "."); err != nil {
		t.c.botched = true
	}
}
