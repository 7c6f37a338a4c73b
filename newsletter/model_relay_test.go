package newsletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox"
	"github.com/postroom/postroom/smtpsend"
)

// relay is the relay as a process of the model reaches it. It notes each attempt, and answers as the history
// wants.
type relay struct {
	*model
	p *process
}

// letter is the mail of a run to a person, and what really became of it.
type letter struct {
	id    string
	run   int
	to    *person
	tries []try

	troubled  bool // an attempt failed: the product may not know its result
	replays   int  // how often an operator had it sent again, or may have
	cancelled bool // an operator cancelled the message, or may have
	settled   bool // an operator counted it as sent, or it proved that it was
	opened    bool // the person opened it, or may have
}

// try is an attempt of a letter.
type try struct {
	reply    string // the relay's; empty if it accepted the mail
	direct   bool   // not by the outbox
	dot      bool   // the final dot was written
	took     bool   // the relay has the mail
	doubtful bool   // the product may not know that
}

// copies counts the emails that the relay took.
func (l *letter) copies() (n int) {
	for _, t := range l.tries {
		if t.took {
			n++
		}
	}
	return n
}

// doubtful reports whether the product may not know an attempt's result.
func (l *letter) doubtful() bool {
	return slices.ContainsFunc(l.tries, func(t try) bool { return t.doubtful })
}

// had reports whether an attempt had a reply.
func (l *letter) had(reply string) bool {
	for _, t := range l.tries {
		if t.reply == reply {
			return true
		}
	}
	return false
}

// A relay's replies, except for the usual one.
const (
	later    = "451 4.7.1 later"       // to RCPT
	laterDot = "452 4.3.1 full"        // to the dot
	nobody   = "550 5.1.1 nobody"      // to RCPT
	unwanted = "550 5.7.1 spam"        // to the dot
	away     = "421 4.3.2 closing"     // to MAIL
	cutTook  = "cut, and it has it"    // after the dot
	cutLost  = "cut, and it lacks it"  // after the dot
	aborted  = "the dot wasn't marked" // before the dot
)

var replies = []string{"", "", "", later, later, laterDot, nobody, unwanted, cutTook, cutLost, away}

// Send implements outbox.Router.
func (r *relay) Send(ctx context.Context, d routing.Dispatch) routing.Sent {
	now := r.clock.Now()
	if now.Before(r.full) && d.Reservation == "" {
		return routing.Sent{Wait: r.full, Reservation: "mine", Reason: "the limit of the relay"}
	}
	id, _, _ := outbox.MessageOf(d.Message.Labels.Proof())
	if c, ok := outbox.ReadCampaignID(id); !ok || c.Run == 0 || c.Campaign != 1 {
		r.tested++
		return sent(d, now, "", nil)
	}
	l := r.letter(id)
	if r.p.killed() { // it has no connections any more
		return sent(d, now, "", abortedBy(errKilled))
	}
	r.begins(l, r.p.op, d)
	r.p.tries()
	op, reply := r.p.op, r.replies[l.to.email]
	risky := op.what != nothing
	l.tries = append(l.tries, try{reply: reply, direct: op.name == mailing,
		doubtful: risky || reply == cutTook || reply == cutLost})
	l.troubled = l.troubled || risky
	t := &l.tries[len(l.tries)-1]
	r.note("%s %s %s: %q", r.p.name, op.name, l, reply)
	switch reply {
	case later, nobody, away:
		return sent(d, now, reply, refusal(reply))
	}
	late := op.late
	err := d.Message.BeforeDot(ctx, d.Message.To)
	if err == nil && late && op.name == mailing {
		r.fail("%s: marked after the lease of the batch had ended", l)
	}
	if err == nil {
		err = r.p.step(func() error { return r.dot(l, t, d) })
	}
	switch {
	case err != nil && !t.dot:
		t.reply = aborted
		return sent(d, now, "", abortedBy(err))
	case err != nil || reply == cutTook || reply == cutLost:
		return sent(d, now, "", &smtpsend.Error{Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeConnection, InDoubt: true, Err: errors.New("EOF")})
	case reply != "":
		return sent(d, now, reply, refusal(reply))
	}
	return sent(d, now, "250 2.0.0 queued", nil)
}

// dot writes the final dot. As in smtpsend, nothing comes between the last look at the lease and the writing.
func (r *relay) dot(l *letter, t *try, d routing.Dispatch) error {
	op := r.p.op
	if t.dot { // a repeated step
		return nil
	}
	if op.late && op.name == mailing {
		return errStopped // its lease is of an hour by the machine's clock, and was ended by the model
	}
	if err := d.Message.AtDot(); err != nil {
		return err
	}
	r.writes(l, op)
	t.dot = true
	t.took = t.reply == "" || t.reply == cutTook
	r.note("the dot of %s, taken %v", l, t.took)
	return nil
}

// begins checks that an attempt may begin: after that was answered, no relay may learn an address.
func (r *relay) begins(l *letter, op *operation, d routing.Dispatch) {
	p, began := l.to, op.attempts()
	switch {
	case p.barred > 0 && began > p.barred:
		r.fail("%s: an attempt began at %d, and the person was barred at %d", l, began, p.barred)
	case r.halted > 0 && max(op.began, op.asked) > r.halted:
		r.fail("%s: an attempt began at %d, and the campaign was stopped at %d", l, max(op.began, op.asked),
			r.halted)
	}
	r.again(l)
	for _, t := range l.tries {
		switch {
		case op.late && op.name == mailing: // its mark will fail
		case t.took && !t.doubtful:
			r.fail("%s: an attempt began, and the relay had accepted the mail", l)
		case t.dot && t.direct && !r.resend && (op.name == mailing || t.took):
			r.fail("%s: an attempt began after one that wrote its dot: %q", l, t.reply)
		}
	}
	if want := r.subject; want != "" && op.began > r.edited && l.run == len(r.runs) &&
		r.state == api.CampaignSending {
		if body, ok := d.Message.Body.(smtpsend.Bytes); !ok || !bytes.Contains(body, []byte("Subject: "+want)) {
			r.fail("%s: its content isn't that of the campaign, %q", l, want)
		}
	}
}

// again checks that no one gets the mail of a run who has another run's, unless the run is for them.
func (r *relay) again(l *letter) {
	for _, other := range r.letters {
		if other.to != l.to || other.run == l.run {
			continue
		}
		if to := r.runs[l.run-1].to; l.run > other.run && (to == toNotOpened || to == toInDoubt) {
			continue
		}
		if slices.ContainsFunc(other.tries, func(t try) bool { return t.took && !t.doubtful }) {
			r.fail("%s: an attempt began, and the person has the mail of run %d", l, other.run)
		}
	}
}

// attempts returns when an attempt that begins now has begun at the earliest. The first one after a stall may
// have looked at its person before.
func (op *operation) attempts() int {
	if op.name != mailing {
		return max(op.began, op.asked)
	}
	if op.resumed == 0 || !op.went {
		op.went = op.resumed > 0
		return op.began
	}
	return op.resumed
}

// writes checks that a dot may be written. A message of the outbox is asked about when its attempt begins.
func (r *relay) writes(l *letter, op *operation) {
	if op.name != mailing {
		return
	}
	if p := l.to; p.barred > 0 && op.reached > p.barred {
		r.fail("%s: marked at %d, and the person was barred at %d", l, op.reached, p.barred)
	}
	if r.halted > 0 && op.reached > r.halted {
		r.fail("%s: marked at %d, and the campaign was stopped at %d", l, op.reached, r.halted)
	}
}

// letter returns the letter of a message.
func (m *model) letter(id string) *letter {
	if l := m.letters[id]; l != nil {
		return l
	}
	c, _ := outbox.ReadCampaignID(id)
	l := &letter{id: id, run: c.Run, to: m.at(c.Ordinal)}
	if l.to == nil {
		m.fail("message %s goes to ordinal %d, whom nobody knows", id, c.Ordinal)
		l.to = &person{}
	}
	m.letters[id] = l
	return l
}

func (l *letter) String() string { return fmt.Sprintf("%s in run %d", l.to.email, l.run) }

// sent returns the result of a message to one recipient.
func sent(d routing.Dispatch, start time.Time, reply string, failed *smtpsend.Error) routing.Sent {
	one := smtpsend.RecipientResult{Address: d.Message.To[0], Response: reply}
	out := routing.Sent{Result: smtpsend.Result{Response: reply}}
	if failed != nil {
		one.Err, out.Err = failed, failed
	}
	out.Result.Recipients = []smtpsend.RecipientResult{one}
	out.Tries = []routing.Try{{Host: "relay.test:25", Start: start, End: start, Result: out.Result,
		Err: out.Err}}
	return out
}

func abortedBy(err error) *smtpsend.Error {
	return &smtpsend.Error{Phase: smtpsend.PhaseBody, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeMessage,
		Command: "DATA", Err: fmt.Errorf("%w: %w", smtpsend.ErrAborted, err)}
}

func refusal(reply string) *smtpsend.Error {
	e := &smtpsend.Error{Phase: smtpsend.PhaseRcpt, Command: "RCPT TO", Line: reply, Verdict: smtpsend.Soft,
		Scope: smtpsend.ScopeRecipient}
	_, _ = fmt.Sscan(reply, &e.Code, &e.Enhanced)
	switch reply {
	case nobody:
		e.Verdict, e.Suppress = smtpsend.Hard, true
	case away:
		e.Phase, e.Command, e.Scope = smtpsend.PhaseMail, "MAIL FROM", smtpsend.ScopeConnection
	case laterDot, unwanted:
		e.Phase, e.Command, e.Scope = smtpsend.PhaseDot, "DATA", smtpsend.ScopeMessage
	}
	if reply == unwanted {
		e.Verdict = smtpsend.Policy
	}
	return e
}

// ExpectWaiting implements outbox.Router.
func (*relay) ExpectWaiting(string, int) {}

// Answers implements outbox.Router.
func (*relay) Answers(string) bool { return true }

// Instead implements outbox.Router.
func (*relay) Instead(accounts.Sender, api.Lane, string) string { return "" }

// Slots implements outbox.Router.
func (*relay) Slots(string, api.Lane) int { return 1 }
