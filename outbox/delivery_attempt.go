package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/accounts"
	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/accounts/gateways"
	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/accounts/routing"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/lease"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/outbox/suppression"
	"github.com/postroom/postroom/smtpsend"
)

// attempt sends a message to the remaining recipients, unless a rule forbids it. All mail goes this way:
// messages with a record (Deliver), and campaign messages, which have none (Mailing.Direct).
func (d *Delivery) attempt(ctx context.Context, c *claim, started time.Time) decision {
	account, stopped, instead := d.prepare(ctx, c, started)
	if instead != nil {
		return *instead
	}
	got := d.Router.Send(ctx, routing.Dispatch{
		Account: account, Gateway: c.gateway, Only: c.status.only(started), Lane: c.lane,
		Reservation: limits.Reservation(c.reservation), Message: d.message(c, stopped), Path: c.envelope.Path,
		Behind: func(scope string) bool { return d.lines.ahead(c, scope) },
	})
	d.tracedTries(ctx, got.Tries)
	switch {
	case got.Relay != "":
		dec := d.hold(c, relayHold{got.Relay, c.lane, account.ID}.String(), got.Reason, got.Wait)
		dec.reservation = string(got.Reservation)
		if d.lines.ahead(c, got.Relay) {
			dec.tried = []string{got.Relay} // the first of the line may have a turn
		}
		return dec
	case !got.Wait.IsZero():
		return decision{outcome: deferred, at: d.clock.Now(), due: got.Wait, reservation: string(got.Reservation),
			reason: got.Reason, apart: got.Destination != ""}
	}
	err := got.Err // from the gateway that was asked last; nil if a recipient has the message
	if n := len(got.Tries); errors.Is(err, routing.ErrNoGateway) {
		err = errNoGateway
	} else if n > 0 {
		err = gateways.Via(got.Tries[n-1].Gateway, err)
	}
	if ctx.Err() == nil && (c.gateway == "" || !account.Hold) {
		d.Accounts.Outcome(ctx, account.ID, err)
	}
	wait := time.Duration(0)
	if se, ok := errors.AsType[*smtpsend.Error](got.Err); ok && se.InDoubt {
		wait = d.reportWait(ctx, c, account, got.Tries)
	}
	return decide(c, attempted{
		start: started, end: d.clock.Now(), tries: got.Tries, result: got.Result, err: err,
		stopping: ctx.Err() != nil, suppressed: stopped, reports: wait,
	}, d.policy(c, account))
}

// prepare applies the rules that an email must keep to, and writes it. It returns the account that sends it
// and the recipients that are suppressed, or the decision to be taken instead of an attempt. A campaign keeps
// to the rules about people and quotas for a batch together, so that its mail costs no round trips here.
func (d *Delivery) prepare(ctx context.Context, c *claim, started time.Time) (account accounts.Sender,
	stopped map[int]*suppression.Entry, instead *decision) {
	p := d.policy(c, account)
	if settled := d.settle(ctx, c, started, p); settled != nil {
		return account, nil, settled
	}
	if err := refuse(c, p, started); err != nil {
		return account, nil, d.refused(c, p, attempted{start: started, err: err})
	}
	if rests := d.campaignRests(ctx, c, started, p); rests != nil {
		return account, nil, rests
	}
	account, err := d.sender(ctx, c)
	switch {
	case endCode(err) != "":
		return account, nil, d.refused(c, p, attempted{start: started, err: err})
	case err != nil:
		return account, nil, d.untried(ctx, c, err, "the account can't be used; the log says why")
	}
	p, c.window = d.policy(c, account), d.windowOf(account)
	wait, err := d.heldBack(ctx, c, account)
	switch {
	case err != nil:
		return account, nil, d.untried(ctx, c, err, "the held account can't be checked; the log says why")
	case wait:
		dec := d.hold(c, accountHold(account.ID), heldReason(account.Held.Reason), account.Held.Next)
		return account, nil, &dec
	}
	if err := d.written(ctx, c, account); err != nil {
		if why := unwritten(ctx, err); why != "" {
			return account, nil, d.untried(ctx, c, err, why)
		}
		err = fmt.Errorf("%w: %w", errUnwritten, err)
		return account, nil, d.refused(c, p, attempted{start: started, err: err})
	}
	if stopped, err = d.stopsNow(ctx, c); err != nil {
		return account, nil, d.untried(ctx, c, err, "the suppressions can't be asked; the log says why")
	}
	if n := len(stopped); n > 0 && n == len(c.status.having(rcptQueued)) {
		instead = d.refused(c, p, attempted{start: started, suppressed: stopped})
	}
	return account, stopped, instead
}

// refused is the decision about a message that no relay may be asked for.
func (d *Delivery) refused(c *claim, p policy, t attempted) *decision {
	t.end, t.refused = d.clock.Now(), true
	dec := decide(c, t, p)
	return &dec
}

// policy returns the policy for an account's message; the zero account is one that was not looked up.
func (d *Delivery) policy(c *claim, account accounts.Sender) policy {
	p := policy{backoff: d.opts.Backoff, holdInDoubt: d.opts.HoldInDoubt, hold: account.Hold,
		noDeadLetters: d.opts.KeepDeadLetters < 0, random: rand.Float64}
	if len(account.Retry) > 0 {
		p.backoff.Schedule = account.Retry
	}
	if c.unrecorded() {
		p.inPlace, p.holdInDoubt, p.noDeadLetters = true, true, true
	}
	return p
}

// untried is the decision about a message for which no relay was asked because of err. If Redis is
// unreachable or the worker is stopping, the message is released. Otherwise (a secret can't be opened) it is
// deferred for a minute; a campaign then looks again, and is held if that continues.
func (d *Delivery) untried(ctx context.Context, c *claim, err error, reason string) *decision {
	d.log.WarnContext(ctx, "message not tried", "message_id", c.id, "account", c.envelope.Account, "reason",
		reason, "error", err)
	dec := &decision{outcome: released, at: d.clock.Now(), reservation: c.reservation, reason: reason}
	away := fault.Is(err, fault.Unavailable) && fault.CodeOf(err) != accounts.Unreadable
	if away || ctx.Err() != nil {
		return dec
	}
	if dec.due = dec.at.Add(time.Minute); !c.unrecorded() {
		dec.outcome = deferred
	}
	return dec
}

// campaignRests returns the decision about a stored message if its campaign doesn't want it sent now,
// otherwise nil. The message then has the campaign's current content and recipient, unless an operator named
// another recipient.
func (d *Delivery) campaignRests(ctx context.Context, c *claim, started time.Time, p policy) *decision {
	if c.envelope.Campaign == nil || d.Campaign == nil || c.unrecorded() {
		return nil
	}
	turn, err := d.Campaign(ctx, c.id)
	switch {
	case fault.Is(err, fault.Conflict):
		return d.refused(c, p, attempted{start: started, err: fmt.Errorf("%w: %w", errResent, err)})
	case err != nil:
		if _, lost := d.Accounts.Resolve(ctx, c.envelope.Account); fault.Is(lost, fault.NotFound) {
			return nil // sender says so
		}
		return d.untried(ctx, c, err, "its campaign can't be asked; the log says why")
	case turn.Over:
		p.noDeadLetters = true // so that no one sends it again
		return d.refused(c, p, attempted{start: started, err: fmt.Errorf("%w: %s", errNotTheirs, turn.Reason)})
	case !turn.Until.IsZero():
		return &decision{outcome: deferred, at: d.clock.Now(), due: turn.Until, reservation: c.reservation,
			reason: turn.Reason}
	case turn.write != nil && c.envelope.Added == 0:
		turn.envelope.Path = c.envelope.Path
		c.envelope, c.gateway, c.write = turn.envelope, turn.gateway, turn.write
		c.cleared = false // the address may be another one
	}
	return nil
}

// sender returns the account of a message. errNoAccount: it was deleted. errNoSender: it has lost a sender,
// or the gateway, since the message was accepted. It doesn't ask this about messages that may name any.
func (d *Delivery) sender(ctx context.Context, c *claim) (accounts.Sender, error) {
	e := &c.envelope
	account, err := d.Accounts.Resolve(ctx, e.Account)
	switch {
	case fault.Is(err, fault.NotFound):
		return account, errNoAccount
	case err != nil || !d.confined(e.Bound):
		return account, err
	}
	if lost := account.CheckGateway(c.gateway); lost != nil {
		return account, fmt.Errorf("%w: %w", errNoSender, lost)
	}
	for _, address := range append([]string{e.From}, e.Named...) {
		if address != "" && !account.MaySendAs(address) { // the null sender is everybody's
			d.metrics.senders.WithLabelValues("attempt").Inc()
			return account, fmt.Errorf("%w: account %s can no longer send as %s; add this sender with "+
				"POST /v1/account/%s/senders, then replay the message or resume the campaign", errNoSender, account.ID,
				address, account.ID)
		}
	}
	return account, nil
}

// written renders the message from its mailing or its shared content, or changes one that was stored whole.
// Each attempt gives the same bytes, unless its campaign was changed.
func (d *Delivery) written(ctx context.Context, c *claim, account accounts.Sender) (err error) {
	date := redisdb.Time(c.personal.Date)
	if c.write != nil {
		c.content, c.text, err = c.write(ctx, account, &c.envelope, date)
		return err
	}
	if err := cmp.Or(c.unopened, d.opens(ctx, c.content)); err != nil {
		return err
	}
	owner := d.owner(account, c.envelope.Bound)
	if c.shared == "" {
		return d.change(ctx, c, owner)
	}
	personal := c.correct(c.personal)
	m, words, err := d.renderSigned(ctx, c.partition, c.shared, c.id, c.envelope, personal, owner)
	if err != nil {
		return err
	}
	c.text = words.Text
	c.content, c.envelope.Size = smtpsend.Bytes(m.Raw), m.Size()
	c.envelope.UTF8, c.envelope.EightBit = c.envelope.UTF8 || m.SMTPUTF8, c.envelope.EightBit || m.EightBit
	return nil
}

// change makes the changes to a message that was stored whole, if there are any.
func (d *Delivery) change(ctx context.Context, c *claim, owner dkim.Owner) error {
	if !c.changes() {
		return nil
	}
	content, err := c.content.Open(ctx)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was read
	raw, err := io.ReadAll(content)
	if err == nil {
		raw, err = d.changed(ctx, c.row, owner, raw)
	}
	if err == nil {
		c.content, c.envelope.Size = smtpsend.Bytes(raw), len(raw)
	}
	return err
}

// unwritten returns why a message that couldn't be rendered or opened must wait. It returns "" if the message
// itself is invalid, and fails.
func unwritten(ctx context.Context, err error) string {
	if fault.CodeOf(err) == notOpened {
		return "its content is sealed under a secret that is not configured (secretPrevious)"
	}
	ours := fault.Is(err, fault.Internal) && !errors.Is(err, errNoSharedContent)
	if ours || fault.Is(err, fault.Unavailable) || ctx.Err() != nil {
		return "the message can't be written; the log says why"
	}
	return ""
}

// stopsNow returns the suppressed recipients directly before an attempt, so that the latest unsubscribe
// counts. If begin.lua found none at most clearedFor ago, the suppressions are not asked. A campaign has
// asked them, and its mark fails if somebody was suppressed since.
func (d *Delivery) stopsNow(ctx context.Context, c *claim) (map[int]*suppression.Entry, error) {
	if c.unrecorded() || c.cleared && d.clock.now().Sub(c.asked) < clearedFor {
		return nil, nil
	}
	return d.stops(ctx, c.envelope, c.lane, c.status.having(rcptQueued))
}

// clearedFor is how long begin.lua's answer counts, from the moment before the call: suppressions may be
// added while the answer is on its way. Nearly all attempts reach their relay within two milliseconds.
const clearedFor = 250 * time.Millisecond

// message is the message for the sender, to the recipients that are left.
func (d *Delivery) message(c *claim, stopped map[int]*suppression.Entry) smtpsend.Message {
	left, to := c.status.having(rcptQueued), c.envelope.To
	left = slices.DeleteFunc(left, func(i int) bool { return stopped[i] != nil })
	if len(left) < len(to) {
		to = c.envelope.addresses(left)
	}
	m := smtpsend.Message{
		To: to, Body: c.content, UTF8: c.envelope.UTF8, EightBit: c.envelope.EightBit,
		DSN: dsn(c.envelope.DSN), RequireTLS: c.envelope.RequireTLS,
		Labels: smtpsend.Labels{
			ID: c.id, Account: c.envelope.Account, Bulk: c.lane == api.Bulk, Tags: c.envelope.Tags,
			Metadata: c.envelope.Metadata, Answered: c.answered(), Doubted: c.status.Doubt != nil,
			Proof: func() string { return d.proof(c.id, c.envelope.Account, c.envelope.To) },
		},
	}
	m.From, m.ReturnPath = d.returnPaths(c)
	if c.unrecorded() {
		m.BeforeDot = func(ctx context.Context, _ []string) error {
			if c.marked {
				return nil // by the request before, which is repeated
			}
			err := c.marks.Mark(ctx)
			c.marked = err == nil
			return err
		}
		m.AtDot = c.marks.Still
		return m
	}
	m.BeforeDot = func(ctx context.Context, _ []string) error { return d.doubt(ctx, c) }
	m.AtDot = func() error { return lease.Check(d.clock.Now(), c.until) }
	m.Answered = func(ctx context.Context, done []smtpsend.RecipientResult) error {
		return d.progress(ctx, c, done)
	}
	return m
}

// dsn is the request for delivery reports in the terms of RFC 3461.
func dsn(r *api.DSN) smtpsend.DSN {
	if r == nil {
		return smtpsend.DSN{}
	}
	return smtpsend.DSN{Envelope: r.ID, Notify: strings.ToUpper(strings.Join(r.Notify, ",")),
		Original: r.Recipient, Return: map[string]string{"headers": "HDRS", "full": "FULL"}[r.Return]}
}

// returnPaths returns the reverse path of a message and, if each of its recipients has their own, a function
// that returns these; then the first is not used. A path of Postroom names message, account and recipient, so
// that bounces come to Postroom.
func (d *Delivery) returnPaths(c *claim) (from string, own func(to string) string) {
	if !c.envelope.Returns || d.Tokens == nil || d.opts.BounceDomain == "" {
		return c.envelope.From, nil
	}
	path := func(to string) string {
		path, err := d.Tokens.ReturnPath(signedtoken.Token{
			MessageID: c.id, Account: c.envelope.Account, Address: to,
		}, d.opts.BounceDomain)
		if err != nil {
			d.log.Error("return path not made; the sender's is used", "message_id", c.id, "error", err)
			return c.envelope.From
		}
		return path
	}
	if len(c.envelope.To) > max(1, d.opts.OwnReturnPaths) {
		return path(""), nil // a bounce to it may have been written by any of them
	}
	return c.envelope.From, path
}
