package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/net/idna"
)

// delivery is one call of Send: the message, who is still without an answer, and what came of the others.
type delivery struct {
	s      *Sender
	relay  Relay
	m      Message
	paths  []string // m.To as the wire wants it, domains in A-labels
	whole  []byte   // a small content as the wire wants it; nil: it is large, and read on its way
	size   int64    // of the content, as RFC 1870 counts
	utf8   bool     // the envelope or the content needs SMTPUTF8
	rest   []int    // recipients not answered yet, as indexes into result.Recipients
	fresh  bool     // only a connection that nobody has used will do
	strict bool     // the message asks for more TLS than the relay's settings
	result Result
}

func newDelivery(s *Sender, relay Relay, m Message) *delivery {
	d := &delivery{s: s, relay: relay, m: m, rest: make([]int, len(m.To))}
	if m.RequireTLS && relay.TLS == TLSOpportunistic {
		// Over a connection of its own: those without such a wish are not verified.
		d.relay.TLS, d.strict = TLSRequired, true
	}
	d.result.Recipients = make([]RecipientResult, len(m.To))
	for i, to := range m.To {
		d.rest[i] = i
		d.result.Recipients[i].Address = to
	}
	return d
}

// check refuses what can be refused without asking the relay, and prepares the rest for the wire.
func (d *delivery) check(ctx context.Context, relay Relay) *Error {
	if err := relay.Check(); err != nil {
		return settingsError(err)
	}
	if err := d.m.check(); err != nil {
		return d.s.silent(err)
	}
	d.utf8 = d.m.UTF8
	d.m.From = d.wirePath(d.m.From)
	d.paths = make([]string, len(d.m.To))
	for i, to := range d.m.To {
		d.paths[i] = d.wirePath(to)
	}
	return d.load(ctx)
}

// wirePath writes an internationalised domain in A-labels, so that only a non-ASCII local part needs
// SMTPUTF8.
func (d *delivery) wirePath(address string) string {
	if ascii(address) {
		return address
	}
	local, domain := splitAddress(address)
	if a, err := idna.Lookup.ToASCII(domain); err == nil {
		address = local + "@" + a
	}
	if !ascii(address) {
		d.utf8 = true
	}
	return address
}

// run sends transaction after transaction until every recipient has an answer. More than one is needed when
// there are more recipients than fit, or the relay says so (RFC 5321 section 4.5.3.1.10).
func (d *delivery) run(ctx context.Context) {
	for len(d.rest) > 0 {
		t, failure := d.begin(ctx)
		if failure == nil {
			d.transact(ctx, t)
			if t.stale {
				// Nothing was answered, so nothing was seen: the connection had died of old age. On one nobody has used
				// that cannot happen, so this ends here.
				d.s.pool.forget(d.relay)
				d.fresh = true
				continue
			}
			failure, d.fresh = t.failure, false
		}
		if failure == nil || goesOn(failure) {
			failure = d.announce(ctx)
		}
		if failure != nil && !goesOn(failure) {
			d.failRest(d.rest, failure)
			return
		}
	}
}

// announce tells the caller what is known so far, when recipients are left.
func (d *delivery) announce(ctx context.Context) *Error {
	if d.m.Answered == nil || len(d.rest) == 0 {
		return nil
	}
	left := make(map[int]bool, len(d.rest))
	for _, i := range d.rest {
		left[i] = true
	}
	var done []RecipientResult
	for i, r := range d.result.Recipients {
		if !left[i] {
			done = append(done, r)
		}
	}
	err := d.m.Answered(ctx, done)
	if err == nil {
		return nil
	}
	return &Error{
		Phase: PhaseMail, Verdict: Soft, Scope: ScopeMessage,
		Err: fmt.Errorf("%w: %w", errUnrecorded, err), name: nameConnection,
	}
}

// errUnrecorded is the cause when Answered said no.
var errUnrecorded = errors.New("not sent: the caller could not record what became of the recipients before")

// goesOn reports whether recipients of a later transaction may fare better than those of one that failed like
// this.
func goesOn(e *Error) bool {
	return e.Phase == PhaseRcpt || e.Phase == PhaseDot && e.Permanent()
}

// begin gets a connection, from the pool or a new one, and begins a transaction on it. It finds one begun
// when the message before has taken the envelope along.
func (d *delivery) begin(ctx context.Context) (*transaction, *Error) {
	begun := time.Now()
	g, err := d.s.pool.take(ctx, d)
	d.result.Timings.Wait += lap(&begun)
	for {
		switch {
		case err != nil:
			return nil, d.s.waitError(ctx, err)
		case g.t != nil:
			d.result.Reused = true
			return g.t, nil
		case g.c != nil && !d.fresh && d.usable(ctx, g.c):
			d.result.Reused = true
			return newTransaction(d, g.c), nil
		case g.c != nil:
			g.c.close()
		}
		c, failure := d.s.open(ctx, d.relay)
		if failure == nil {
			d.opened(c)
			return newTransaction(d, c), nil
		}
		if !errors.Is(failure, errNotAdmitted) {
			d.s.pool.drop(d.relay, nil)
			return nil, d.blame(failure)
		}
		lap(&begun)
		g, err = d.s.pool.takeOpen(ctx, d)
		d.result.Timings.Wait += lap(&begun)
		if errors.Is(err, errAlone) {
			return nil, failure
		}
	}
}

// blame makes a relay without the TLS that only this message insists on the message's trouble, not the
// account's.
func (d *delivery) blame(e *Error) *Error {
	if d.strict && e.Verdict == Auth && (e.Phase == PhaseTLS || e.Phase == PhaseSTARTTLS) {
		e.Verdict, e.Scope = Policy, ScopeMessage
	}
	return e
}

func (d *delivery) opened(c *session) {
	d.result.Reused = false
	d.result.Timings.Connect += c.timings.Connect
	d.result.Timings.TLS += c.timings.TLS
	d.result.Timings.Auth += c.timings.Auth
}

// usable asks a connection that was idle for a while whether it is still there. A round trip is not worth it
// for a short while.
func (d *delivery) usable(ctx context.Context, c *session) bool {
	const shortWhile = 5 * time.Second
	if time.Since(c.idleSince) <= shortWhile {
		return true
	}
	stop := c.watch(ctx)
	ok := c.noop(min(d.s.timeout, shortWhile))
	return stop() && ok
}

// transact runs one transaction and gives its connection back, to the message whose envelope went along if
// there is one. Recipients that were answered leave d.rest.
func (d *delivery) transact(ctx context.Context, t *transaction) {
	c := t.c
	d.result.RemoteName, d.result.TLS = c.name, c.tls
	d.result.RemoteAddress = c.raw.RemoteAddr().String()
	stop := c.watch(ctx)
	t.run(ctx)
	if t.ahead && t.stale && t.failure.Timeout() {
		d.s.pool.unchain(d.relay) // it answered the dot, and lost what came with it
	}
	if !stop() || c.botched || t.follower == nil && c.r.Buffered() > 0 {
		c.close()
		d.s.pool.drop(d.relay, t.follower)
	} else {
		d.s.pool.give(d.relay, c, t.follower)
	}
	if !t.stale {
		d.rest = append(t.next, d.rest[len(t.to):]...)
	}
}

// failRest gives the recipients without an answer the failure of the whole. What is only true of the
// transaction that failed is taken out: nothing was ever sent for these.
func (d *delivery) failRest(rest []int, e *Error) {
	other := *e
	other.InDoubt, other.Suppress, other.NewTransaction = false, false, false
	for _, i := range rest {
		d.result.Recipients[i].Err = &other
		d.result.Recipients[i].Response = e.Line
	}
	d.rest = nil
}

// err speaks for the whole message: nil when somebody got it, else the failure most worth another attempt.
func (d *delivery) err() error {
	var worst *Error
	rejected := true
	for _, r := range d.result.Recipients {
		switch {
		case r.Err == nil:
			return nil
		case worst == nil, worst.Permanent() && !r.Err.Permanent(), !worst.InDoubt && r.Err.InDoubt:
			worst = r.Err
		}
		rejected = rejected && r.Err.Phase == PhaseRcpt && r.Err.Code != 0
	}
	if worst == nil {
		return envelopeError("no recipients", nil)
	}
	if rejected {
		all := *worst
		all.Err = errors.New("all recipients were rejected")
		return &all
	}
	return worst
}

// waitError is a connection nobody had free.
func (s *Sender) waitError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		err = fmt.Errorf("waiting for a free connection: %w", err)
		e := s.ioError(ctx, PhaseConnect, "", err)
		e.Err = err
		return e
	}
	return s.silent(&Error{Phase: PhaseConnect, Verdict: Soft, Scope: ScopeConnection, Err: err,
		name: nameConnection})
}
