package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
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

// Fate is the result of sending a message directly.
type Fate int

// The fates.
const (
	// FateSent: a relay took the message.
	FateSent Fate = iota
	// FateRefused means that it was refused permanently. Hard reports whether the address is the reason.
	FateRefused
	// FatePutOff means that this message, or this address, must be tried again later. See Enqueue.
	FatePutOff
	// FateInDoubt: the connection was cut between the final dot and the reply.
	FateInDoubt
	// FateUnsent means that nothing was delivered, for a reason outside the message and its address: a limit, no
	// relay that accepts mail now, a failed mark, or a process that is stopping.
	FateUnsent
)

// Sending is the result of a message that was sent directly.
type Sending struct {
	Fate  Fate
	Hard  bool      // with FateRefused: the address does not exist or takes no mail
	Until time.Time // with FateUnsent: when to try again; zero means soon
	Busy  bool      // with FateUnsent: all connections to the relay are taken
	Hold  string    // with FateUnsent: why nothing more can be sent: HoldAccount, HoldSender; empty if it can
	Waits bool      // with FateUnsent: no relay was asked, because of a limit, a held account or a paused relay
	Apart bool      // with Waits: only mail to the same domain waits with it. See Enqueue
	// with Waits: pass it with the mailing's next message that is sent at Until or later; may be empty
	Reservation limits.Reservation
	Response    string // the relay's, or why there is none
	Marked      bool   // the mark was set
}

// Direct sends a message once, with the rules and decisions that apply to all mail (Delivery.attempt). It has
// no record: the caller knows the result, and repeats nothing that was sent. had is the reservation of an
// earlier message that had to wait, or empty.
func (m *Mailing) Direct(ctx context.Context, a Addressee, had limits.Reservation, around Marks) Sending {
	d := m.mailings.delivery
	e, write := m.messageTo(a)
	c := &claim{row: row{id: a.ID, partition: d.partition(a.ID), lane: api.Bulk, gateway: m.shared.Gateway,
		max: m.attempts(), envelope: e, status: newStatus(e)}, reservation: string(had), write: write,
		personal: render.Personalization{Date: redisdb.Millis(a.Date)}, marks: &around,
		passes: true} // it stands in no line, and would never have its turn
	dec := d.attempt(ctx, c, d.clock.Now())
	if dec.outcome != released && !dec.waits() || len(dec.tried) > 0 {
		m.learn(context.WithoutCancel(ctx), c, &dec)
	}
	return dec.sending(c)
}

// attempts returns how many attempts a message has.
func (m *Mailing) attempts() int { return cmp.Or(m.shared.Attempts, m.mailings.opts.Attempts()) }

// messageTo returns the envelope of a message, and what writes it.
func (m *Mailing) messageTo(a Addressee) (envelope, writer) {
	e, wrong := m.envelope(a)
	return e, func(ctx context.Context, account accounts.Sender, e *envelope, date time.Time) (smtpsend.Body,
		string, error) {
		if wrong != nil {
			return nil, "", wrong
		}
		now := *m
		now.account, a.Date = account, date
		c, mail, err := now.write(ctx, a, e)
		if err != nil {
			return nil, "", err
		}
		if parts := m.Captive(mail); len(parts) > 0 {
			return nil, "", fault.New(fault.Unprocessable, "NoUnsubscribeLink", "the %s has no "+
				"unsubscribe link",
				strings.Join(parts, " and the "))
		}
		return smtpsend.Bytes(c.Raw), mail.Text, nil
	}
}

// learn does what Delivery.record does for a message with a record. The event goes before the campaign
// records the result, so a crash in between repeats no event and loses none.
func (m *Mailing) learn(ctx context.Context, c *claim, dec *decision) {
	d := m.mailings.delivery
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
		Marked: c.marked, Reservation: limits.Reservation(d.reservation), Apart: d.apart}
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
			s.Hard = se.Verdict == smtpsend.Hard
		}
	case held:
		_, s.Busy = readRelayHold(d.hold)
	}
	return s
}

// Enqueue turns a message that a relay deferred into one of the outbox: it is tried again from a given time,
// and the attempt that was made counts. With a reservation, the message waits for a limit and no attempt was
// made. A message that was enqueued before doesn't change, so you may repeat Enqueue.
func (m *Mailing) Enqueue(ctx context.Context, a Addressee, due time.Time, had limits.Reservation) error {
	s, made := m.mailings, 1
	if had != "" {
		made = 0
	}
	e, err := m.envelope(a)
	if err != nil {
		return err
	}
	if _, _, err := m.write(ctx, a, &e); err != nil {
		return err
	}
	personal := a.personal()
	if personal.Params, err = json.Marshal(a.Params); err != nil {
		return fmt.Errorf("store the params of message %s: %w", a.ID, err)
	}
	content, err := s.shared.prepare(ctx, m.Content())
	if err != nil {
		return err
	}
	q, err := s.Accounts.Quota(ctx, e.Account)
	if err != nil {
		return err
	}
	one := &newMessage{counted: true, quotas: quotasOf(e.Account, q, m.shared.Token, m.shared.TokenQuota),
		id: a.ID, partition: s.partition(a.ID), envelope: e, shared: content,
		personal: personal, lane: api.Bulk, gateway: m.shared.Gateway, window: s.windowOf(m.account), size: e.Size,
		attempts: m.attempts(), made: made, reservation: string(had), due: redisdb.Millis(due)}
	if err := s.intake.encode(one); err != nil {
		return err
	}
	one.unlook() // they were asked for this email, and are again before the next attempt
	s.intake.enter(ctx, []*newMessage{one})
	return one.result.Err
}

// Turn makes a message that was enqueued go as the mailing says now, to an addressee.
func (m *Mailing) Turn(a Addressee) Turn {
	e, write := m.messageTo(a)
	return Turn{envelope: e, gateway: m.shared.Gateway, write: write}
}

// Room is what a mailing has used of a day's quotas: its account's and the starting token's.
type Room struct {
	Messages int // that may be sent
	day      string
	owners   []string // the counts' owners
}

// Reserve counts messages before they are sent, as many as the quotas have room for, and most at most.
// Limited, with the time to come back: there is no room. Messages that wait in the outbox take room, too.
func (m *Mailing) Reserve(ctx context.Context, most int) (Room, error) {
	s, token := m.mailings.store, ""
	q, err := s.Accounts.Quota(ctx, m.account.ID)
	if err != nil {
		return Room{}, err
	}
	check, err := newQuotaCheck(ctx, s, quotasOf(m.account.ID, q, m.shared.Token, m.shared.TokenQuota))
	if err != nil {
		return Room{}, err
	}
	room := Room{day: s.keys.quotaDay(0, check.now), owners: []string{m.account.ID}}
	if token = tokenOf(check.quotas); token != "" {
		room.owners = append(room.owners, quota{token: token}.owner())
	}
	args := reserveArgs{Account: m.account.ID, Token: token, Day: check.now.UTC().Format(dayForm), Most: most}
	args.Quotas, args.Partitions = check.args(0)
	got, err := reserveScript.RunReplicated(ctx, s.DB, []string{room.day}, args)
	switch {
	case err != nil:
		return Room{}, redisError(err, "reserve room in the quotas of "+m.account.ID)
	case got.Word == "OVER":
		return Room{}, check.exceeded(ctx, s.Accounts, 0, 1, got.First)
	}
	room.Messages = got.Messages
	return room, nil
}

// Unreserve gives back the room of messages that were not sent.
func (m *Mailing) Unreserve(ctx context.Context, r Room, unsent int) error {
	pipe := m.mailings.DB.Client().Pipeline()
	for _, owner := range r.owners {
		pipe.HIncrBy(ctx, r.day, owner, int64(-unsent))
	}
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "give back room in the quotas of %s", m.account.ID)
}
