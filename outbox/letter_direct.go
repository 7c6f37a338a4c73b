package outbox

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/outbox/templates/render"
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
	Waits bool      // with FateUnsent: no relay was asked, because of a limit, a held account, or one that rests
	// with Waits: to be shown by the next mail of the letter that is sent at Until or later; empty: none
	Reservation limits.Reservation
	Response    string // of the relay, or why there is none
	Marked      bool   // the mark was set
}

// Direct sends a message once, by the rules and with the decisions of any other (Delivery.attempt). It has no
// record: the caller knows what came of it, and repeats nothing that was sent. had is the reservation of an
// earlier mail that had to wait; empty: none.
func (l *Letter) Direct(ctx context.Context, a Addressee, had limits.Reservation, around Marks) Sending {
	d := l.letters.delivery
	e, write := l.mailing(a)
	c := &claim{row: row{id: a.ID, partition: d.partition(a.ID), lane: api.Bulk, gateway: l.shared.Gateway,
		max: l.attempts(), envelope: e, status: newStatus(e)}, reservation: string(had), write: write,
		personal: render.Personalization{Date: redisdb.Millis(a.Date)}, marks: &around,
		passes: true} // it stands in no line, and would never have its turn
	dec := d.attempt(ctx, c, d.clock.Now())
	if dec.outcome != released && !dec.waits() || len(dec.tried) > 0 {
		l.learn(context.WithoutCancel(ctx), c, &dec)
	}
	return dec.sending(c)
}

// mailing returns the envelope of a message, and what writes it.
func (l *Letter) mailing(a Addressee) (envelope, writer) {
	e, wrong := l.envelope(a)
	return e, func(ctx context.Context, account accounts.Sender, e *envelope, date time.Time) (smtpsend.Body,
		string, error) {
		if wrong != nil {
			return nil, "", wrong
		}
		now := *l
		now.account, a.Date = account, date
		m, mail, err := now.write(ctx, a, e)
		if err != nil {
			return nil, "", err
		}
		if parts := l.Captive(mail); len(parts) > 0 {
			return nil, "", fault.New(fault.Unprocessable, "NoUnsubscribeLink", "the %s shows no way to unsubscribe",
				strings.Join(parts, " and the "))
		}
		return smtpsend.Bytes(m.Raw), mail.Text, nil
	}
}

// learn does what Delivery.record does for a message with a record. The event goes before the campaign
// records the result, so a crash in between repeats no event and loses none.
func (l *Letter) learn(ctx context.Context, c *claim, dec *decision) {
	d := l.letters.delivery
	if err := d.reportDead(ctx, c, *dec); err != nil {
		d.log.WarnContext(ctx, "address not suppressed; its next mail will be refused, too", "message_id", c.id,
			"error", err)
	}
	if kind := published[dec.outcome]; kind != "" && (d.opts.Archived || !c.envelope.Campaign.Quiet(kind)) {
		events, err := dec.events(c)
		if err == nil {
			err = d.DB.Client().XAdd(ctx, &redis.XAddArgs{Stream: d.keys.events(c.partition),
				Values: []string{"e", events.lines[0]}}).Err()
		}
		if err != nil {
			d.log.WarnContext(ctx, "event of a campaign lost", "message_id", c.id, "event", kind, "error", err)
		}
	}
	d.learned(ctx, c, dec)
}

// published are the types of the events about mail to one recipient.
var published = map[outcome]event.Type{sent: event.MessageSent, delayed: event.MessageDeliveryError,
	dropped: event.MessageFailed}

// sending is the decision as the campaign takes it.
func (d *decision) sending(c *claim) Sending {
	s := Sending{Fate: FateUnsent, Until: d.due, Hold: d.ban, Waits: d.waits(), Response: d.reason,
		Marked: c.marked, Reservation: limits.Reservation(d.reservation)}
	switch d.outcome {
	case sent:
		s.Fate, s.Response = FateSent, d.response
	case delayed:
		s.Fate, s.Response = FatePutOff, d.cause.Message
	case dropped:
		s.Fate, s.Until, s.Response = FateRefused, time.Time{}, d.cause.Message
		if se := d.why[0].smtp; d.fresh {
			s.Fate = FateInDoubt
		} else if se != nil {
			s.Hard = se.Suppress || se.Verdict == smtpsend.Hard
		}
	case held:
		_, s.Busy = readRelayHold(d.hold)
	}
	return s
}
