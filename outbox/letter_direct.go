package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/smtpsend"
)

// Fate is what came of a message that was sent directly.
type Fate int

// The fates.
const (
	// FateSent: a relay took the message.
	FateSent Fate = iota
	// FateRefused: it was refused for good. Hard says whether because of the address.
	FateRefused
	// FatePutOff: this message, or this address, is to be tried again later. See Adopt.
	FatePutOff
	// FateInDoubt: the connection was cut between the final dot and the reply.
	FateInDoubt
	// FateUnsent: nothing was delivered, and neither the message nor its address is at fault: a limit was
	// reached, no relay takes mail now, the mark failed, or the process is stopping.
	FateUnsent
)

// Sending is the result of a message that was sent directly.
type Sending struct {
	Fate  Fate
	Hard  bool      // with FateRefused: the address does not exist or takes no mail
	Until time.Time // with FateUnsent: when to try again; zero: soon
	Busy  bool      // with FateUnsent: all connections to the relay are taken
	Hold  string    // with FateUnsent: why nothing more can be sent: HoldAccount, HoldSender; empty: it can
	Waits bool      // with FateUnsent: no relay was asked, because of a limit or one that rests
	// with Waits: to be shown by the next mail of the letter that is sent at Until or later; empty: none
	Reservation limits.Reservation
	Response    string // of the relay, or why there is none
	Marked      bool   // the mark was set
}

// The values of Sending.Hold.
const (
	HoldAccount = "account" // the relay refused the account itself
	HoldSender  = "sender"  // the account has lost its sender or its gateway
)

// holds are the values of Sending.Hold by the codes of endCodes.
var holds = map[string]string{"ENOACCOUNT": HoldAccount, "ENOSENDER": HoldSender}

// Marks are asked about a message around its final dot.
type Marks struct {
	// Mark notes that the dot will be written. If it fails, nothing is delivered.
	Mark func(context.Context) error
	// Still reports why the mark does not count any more; nil: it does. Without I/O.
	Still func() error
}

// Direct sends a message once. It has no record: the caller knows what came of it, and repeats nothing that
// was sent. had is the reservation of an earlier mail that had to wait; empty: none.
func (l *Letter) Direct(ctx context.Context, a Addressee, had limits.Reservation, marks Marks) Sending {
	e, err := l.envelope(a)
	var body smtpsend.Bytes
	if err == nil {
		var lost error
		if l, lost = l.current(ctx, e); lost != nil {
			return Sending{Fate: FateUnsent, Hold: holds[endCode(lost)], Response: lost.Error()}
		}
		c, mail, wrong := l.write(ctx, a, &e)
		if err = wrong; err == nil {
			body = c.Raw
			if parts := l.Captive(mail); len(parts) > 0 {
				err = fmt.Errorf("the %s shows no way to unsubscribe", strings.Join(parts, " and the "))
			}
		}
	}
	if err != nil {
		if ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
			return Sending{Fate: FateUnsent, Response: err.Error()}
		}
		s := Sending{Fate: FateRefused, Response: "not written: " + err.Error()}
		l.report(ctx, &claim{row: row{id: a.ID, envelope: e, lane: api.Bulk}},
			routing.Sent{Err: fmt.Errorf("%w: %w", errUnwritten, err)}, s)
		return s
	}
	marked := false
	s := l.letters
	path := &claim{row: row{id: a.ID, envelope: e, lane: api.Bulk, gateway: l.shared.Gateway}}
	got := s.Router.Send(ctx, routing.Dispatch{
		Proof:   func() string { return s.proof(a.ID, e.Account, e.To) },
		Account: l.account, Gateway: l.shared.Gateway, Lane: api.Bulk, Reservation: had,
		Message: smtpsend.Message{
			From: e.From, ReturnPath: s.delivery.returnPaths(path), To: e.To, Body: body, UTF8: e.UTF8,
			EightBit: e.EightBit, AtDot: marks.Still,
			BeforeDot: func(ctx context.Context, _ []string) error {
				err := marks.Mark(ctx)
				marked = err == nil
				return err
			},
		},
	})
	sending := l.judge(ctx, got)
	sending.Marked = marked
	l.learn(ctx, path, got, sending)
	return sending
}

// current returns the letter with its account as it is now. Its errors are those of sender. errNoSender also
// means that the account has lost the gateway.
func (l *Letter) current(ctx context.Context, e envelope) (*Letter, error) {
	now := *l
	var err error
	now.account, err = l.letters.delivery.sender(ctx, e)
	if err == nil && l.letters.confined(e.Bound) {
		if lost := now.account.CheckGateway(l.shared.Gateway); lost != nil {
			err = fmt.Errorf("%w: %w", errNoSender, lost)
		}
	}
	return &now, err
}

// report emits the event about a message that got its result, if its campaign wants that. It goes before the
// result is recorded, so a crash in between repeats no event and loses none.
func (l *Letter) report(ctx context.Context, c *claim, got routing.Sent, s Sending) {
	st := l.letters.store
	now := st.clock.Now()
	about := c.envelope.about(c.id, c.lane, c.gateway, c.envelope.To)
	if n := len(got.Tries); n > 0 {
		about.Gateway, about.LocalAddress = got.Tries[n-1].Gateway, got.Tries[n-1].Address
	}
	var data any = event.Sent{Message: about, Response: s.Response, Accepted: about.Envelope.To}
	kind := event.MessageSent
	if s.Fate != FateSent {
		se, _ := errors.AsType[*smtpsend.Error](got.Err)
		said := describe(got.Err, se)
		f := event.Failure{Error: said.Message, ErrorCode: said.Code}
		if se != nil && said.SMTP != 0 {
			f.SMTPCommand, f.SMTPResponse, f.SMTPResponseCode = se.Command, se.Line, &said.SMTP
		}
		kind, data = event.MessageFailed, event.Failed{Message: about, Failure: f,
			Job: event.Job{ID: c.id, AttemptsMade: 1, Attempts: 1}}
	}
	if s.Fate == FatePutOff {
		failed := data.(event.Failed)
		failed.Job.Attempts, failed.Job.NextAttempt = cmp.Or(l.shared.Attempts, st.opts.Attempts()), &s.Until
		kind, data = event.MessageDeliveryError, event.DeliveryError{Message: about, Failure: failed.Failure,
			Job: failed.Job}
	}
	quiet := c.envelope.Campaign.Quiet(kind)
	if c.envelope.Campaign == nil || quiet && !st.opts.Archived {
		return
	}
	e, err := event.New(newEventID(now), kind, c.envelope.Account, now, data)
	var line string
	if e.Quiet = quiet; err == nil {
		line, err = e.Line()
	}
	if err == nil {
		err = st.DB.Client().XAdd(ctx, &redis.XAddArgs{Stream: st.keys.events(st.partition(c.id)),
			Values: []string{"e", line}}).Err()
	}
	if err != nil {
		st.log.WarnContext(ctx, "event of a campaign lost", "message_id", c.id, "event", kind, "error", err)
	}
}

// judge says what came of a message.
func (l *Letter) judge(ctx context.Context, got routing.Sent) Sending {
	if got.Relay != "" || !got.Wait.IsZero() {
		return Sending{Fate: FateUnsent, Until: got.Wait, Busy: got.Relay != "", Waits: true,
			Reservation: got.Reservation, Response: got.Reason}
	}
	if got.Err == nil {
		return Sending{Fate: FateSent, Response: got.Result.Response}
	}
	se, said := errors.AsType[*smtpsend.Error](got.Err)
	switch {
	case said && se.InDoubt:
		return Sending{Fate: FateInDoubt, Response: se.Error()}
	case errors.Is(got.Err, smtpsend.ErrAborted) || ctx.Err() != nil:
		return Sending{Fate: FateUnsent, Response: got.Err.Error()}
	case !said: // the gateway is gone
		return Sending{Fate: FateUnsent, Hold: HoldAccount, Response: got.Err.Error()}
	case troubled(se):
		return Sending{Fate: FateUnsent, Hold: HoldAccount, Response: describe(got.Err, se).Message}
	case se.Elsewhere(), se.Scope == smtpsend.ScopeConnection, se.Code == 0:
		return Sending{Fate: FateUnsent, Until: l.later(se), Response: describe(got.Err, se).Message}
	case se.Permanent():
		return Sending{Fate: FateRefused, Hard: se.Suppress || se.Verdict == smtpsend.Hard,
			Response: describe(got.Err, se).Message}
	}
	return Sending{Fate: FatePutOff, Until: l.later(se), Response: describe(got.Err, se).Message}
}

// later is when to try again after a failure that should pass, as the backoff and the relay want.
func (l *Letter) later(se *smtpsend.Error) time.Time {
	d := l.letters.delivery
	p := d.policy(l.account.Retry)
	return d.clock.Now().Add(max(p.backoff.Delay(2, p.random()), se.RetryAfter))
}

// learn reports an address that does not exist to the suppressions, and the outcome to the account.
func (l *Letter) learn(ctx context.Context, c *claim, got routing.Sent, s Sending) {
	d := l.letters.delivery
	ctx = context.WithoutCancel(ctx)
	if len(got.Tries) > 0 && l.shared.Gateway == "" {
		err := got.Err
		if n := len(got.Tries); err != nil {
			err = gateways.Via(got.Tries[n-1].Gateway, err)
		}
		d.Accounts.Outcome(ctx, l.account.ID, err)
	}
	if s.Fate == FateSent || s.Fate == FateRefused || s.Fate == FatePutOff {
		l.report(ctx, c, got, s)
	}
	switch s.Fate {
	case FateSent:
		d.handled.Add(1)
		d.metrics.recipients.WithLabelValues(rcptSent).Inc()
	case FateRefused:
		d.metrics.recipients.WithLabelValues(rcptFailed).Inc()
		se, _ := errors.AsType[*smtpsend.Error](got.Err)
		dec := decision{lost: []int{0}, why: map[int]reason{0: {describe(got.Err, se), se}}}
		if err := d.reportDead(ctx, c, dec); err != nil {
			d.log.WarnContext(ctx, "address not suppressed; its next mail will be refused, too", "message_id", c.id,
				"error", err)
		}
	}
}
