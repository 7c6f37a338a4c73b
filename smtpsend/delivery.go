package smtpsend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/net/idna"
)

// delivery is one call of Send: the message, the recipients not answered yet, and the results of the others.
type delivery struct {
	s      *Sender
	relay  Relay
	m      Message
	paths  []string // m.To in wire form, domains in A-labels
	from   []string // each recipient's reverse path, in wire form; nil means m.From for all
	whole  []byte   // a small content in wire form; nil for a large one, which is streamed
	size   int64    // of the content, as RFC 1870 counts it
	utf8   bool     // the envelope or the content needs SMTPUTF8
	rest   []int    // recipients not answered yet, as indexes into result.Recipients
	fresh  bool     // use only a new connection
	strict bool     // the message asks for more TLS than the relay's settings
	record *recorder
	result Result
}

func newDelivery(s *Sender, relay Relay, m Message) *delivery {
	d := &delivery{s: s, relay: relay, m: m, rest: make([]int, len(m.To))}
	if m.RequireTLS && relay.TLS == TLSOpportunistic {
		// This message needs its own connection: TLSOpportunistic's aren't verified.
		d.relay.TLS, d.strict = TLSRequired, true
	}
	d.result.Recipients = make([]RecipientResult, len(m.To))
	for i, to := range m.To {
		d.rest[i] = i
		d.result.Recipients[i].Address = to
	}
	return d
}

// check refuses what can be refused without the relay, and prepares the rest for the wire.
func (d *delivery) check(ctx context.Context, relay Relay) *Error {
	if err := relay.Check(); err != nil {
		return settingsError(err)
	}
	if err := d.m.Check(); err != nil {
		return d.s.silent(err)
	}
	d.utf8 = d.m.UTF8
	d.m.From = d.wirePath(d.m.From)
	d.paths = make([]string, len(d.m.To))
	for i, to := range d.m.To {
		d.paths[i] = d.wirePath(to)
		if d.m.ReturnPath == nil {
			continue
		}
		from := d.m.ReturnPath(to)
		if err := checkAddress(from); err != nil {
			return d.s.silent(refusal(nameEnvelope, "invalid return path: %w", err))
		}
		d.from = append(d.from, d.wirePath(from))
	}
	return d.load(ctx)
}

// reversePath returns the reverse path of a transaction that begins with a recipient.
func (d *delivery) reversePath(i int) string {
	if d.from == nil {
		return d.m.From
	}
	return d.from[i]
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

// run sends transaction after transaction until every recipient has an answer. It takes several if there are
// more recipients than fit, or if the relay says so (RFC 5321 section 4.5.3.1.10).
func (d *delivery) run(ctx context.Context) {
	for len(d.rest) > 0 {
		t, failure := d.begin(ctx)
		if failure == nil {
			d.transact(ctx, t)
			if t.stale {
				// Nothing was answered, so nothing was seen: the connection had died while idle. A new one cannot be
				// stale, so this happens once.
				d.record.note("the connection had ended before; another one follows")
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

// announce calls Answered with the results so far, if recipients are left.
func (d *delivery) announce(ctx context.Context) *Error {
	if d.m.Answered == nil || len(d.rest) == 0 {
		return nil
	}
	var done []RecipientResult
	for i, r := range d.result.Recipients {
		if !slices.Contains(d.rest, i) {
			done = append(done, r)
		}
	}
	if err := d.m.Answered(ctx, done); err != nil {
		return newError(PhaseMail, Soft, ScopeMessage, nameConnection, fmt.Errorf("%w: %w", errUnrecorded, err))
	}
	return nil
}

// errUnrecorded is the cause when Answered failed.
var errUnrecorded = errors.New("not sent: the caller couldn't record the results of the previous recipients")

// goesOn reports whether a further transaction may succeed after one that failed with e.
func goesOn(e *Error) bool {
	return e.Phase == PhaseRcpt || e.Phase == PhaseDot && e.Permanent()
}

// begin gets a connection, from the pool or a new one, and begins a transaction on it, unless the message
// before has sent the envelope already.
func (d *delivery) begin(ctx context.Context) (*transaction, *Error) {
	begun := time.Now()
	g, err := d.s.pool.take(ctx, d)
	d.result.Timings.Wait += lap(&begun)
	for {
		switch {
		case err != nil:
			failure := d.s.waitError(ctx, err)
			d.record.ended(failure)
			return nil, failure
		case g.t != nil:
			d.result.Reused = true
			return g.t, nil
		case g.c != nil && !d.fresh && d.usable(ctx, g.c):
			d.result.Reused = true
			return newTransaction(d, g.c), nil
		case g.c != nil:
			g.c.close()
		}
		c, failure := d.s.open(ctx, d.share(), d.record)
		if failure == nil {
			d.result.Reused = false
			d.result.Timings.Connect += c.timings.Connect
			d.result.Timings.TLS += c.timings.TLS
			d.result.Timings.Auth += c.timings.Auth
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

// share is the relay with the connections that the message may use of it.
func (d *delivery) share() Relay {
	relay := d.relay
	if d.m.Bulk {
		relay.Connections -= Reserved(relay.Connections)
	}
	return relay
}

// blame gives a TLS failure to the message instead of the account, if only the message insists on TLS.
func (d *delivery) blame(e *Error) *Error {
	if d.strict && e.Verdict == Auth && (e.Phase == PhaseTLS || e.Phase == PhaseSTARTTLS) {
		e.Verdict, e.Scope = Policy, ScopeMessage
	}
	return e
}

// usable reports whether a connection still works. One that was idle for more than 5 seconds is asked by
// NOOP.
func (d *delivery) usable(ctx context.Context, c *session) bool {
	const shortWhile = 5 * time.Second
	d.record.reused(c)
	if time.Since(c.idleSince) <= shortWhile {
		return true
	}
	stop := c.watch(ctx)
	d.record.said("NOOP")
	r, err := c.ask(min(d.s.o.Timeout, shortWhile), "NOOP")
	if err == nil {
		d.record.heard(r)
	}
	return stop() && err == nil && r.positive()
}

// transact runs one transaction and returns its connection to the pool, or to the message whose envelope is
// on it. Recipients that were answered leave d.rest.
func (d *delivery) transact(ctx context.Context, t *transaction) {
	c := t.c
	d.result.RemoteName, d.result.TLS, d.result.TLSFailed = c.name, c.tls, c.tlsFailed
	d.result.RemoteAddress = c.raw.RemoteAddr().String()
	stop := c.watch(ctx)
	t.run(ctx)
	if t.failure != nil {
		d.record.ended(t.failure)
	}
	if t.ahead && t.stale && t.failure.Timeout() {
		d.s.pool.unchain(d.relay) // it answered the dot, and lost what was sent with it
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

// failRest gives the failure to the recipients without an answer. It removes details that are true only of
// the failed transaction: nothing was sent for these.
func (d *delivery) failRest(rest []int, e *Error) {
	other := *e
	other.InDoubt, other.Suppress, other.NewTransaction = false, false, false
	for _, i := range rest {
		d.result.Recipients[i].Err = &other
		d.result.Recipients[i].Response = e.Line
	}
	d.rest = nil
}

// delivered reports whether every recipient got the message.
func (d *delivery) delivered() bool {
	return !slices.ContainsFunc(d.result.Recipients, func(r RecipientResult) bool { return r.Err != nil })
}

// waitError is a wait for a connection that failed.
func (s *Sender) waitError(ctx context.Context, err error) *Error {
	if ctx.Err() != nil {
		e := s.ioError(ctx, PhaseConnect, "", err)
		e.Err = fmt.Errorf("waiting for a free connection: %w", err)
		return e
	}
	verdict := Soft
	if errors.Is(err, errNoSlot) {
		verdict = Throttle
	}
	return s.silent(newError(PhaseConnect, verdict, ScopeConnection, nameConnection, err))
}
