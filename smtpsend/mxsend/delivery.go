package mxsend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// delivery is one call of Send.
type delivery struct {
	s       *Sender
	to      Target
	sources []Source
	m       smtpsend.Message
	begun   time.Time
	six     *bool // the system's choice may be an IPv6 address; nil if not known yet

	result   smtpsend.Result
	final    []bool                  // recipients whose result stands
	told     int                     // how many of them Answered knows
	notes    []smtpsend.DialogueLine // one for each host that failed
	dialogue []smtpsend.DialogueLine // with the last one
	stopped  *smtpsend.Error         // the caller could not record something: nothing more is sent
}

func (s *Sender) newDelivery(to Target, m smtpsend.Message) (*delivery, error) {
	d := &delivery{s: s, to: to, m: m, begun: s.o.Now(), final: make([]bool, len(m.To))}
	d.result.Recipients = make([]smtpsend.RecipientResult, len(m.To))
	for i, address := range m.To {
		d.result.Recipients[i].Address = address
	}
	err := to.Check()
	if err == nil {
		d.sources, err = DecodeSources(to.Addresses)
	}
	return d, err
}

func (d *delivery) everybody() []int {
	all := make([]int, len(d.m.To))
	for i := range all {
		all[i] = i
	}
	return all
}

// run delivers to one batch after the other.
func (d *delivery) run(ctx context.Context) {
	for _, b := range d.batches(ctx) {
		if d.stopped == nil {
			d.unlessItRests(ctx, b)
		}
		if d.stopped != nil {
			d.fail(b.open, d.stopped)
		}
	}
}

// unlessItRests delivers to a batch, unless none of its servers could be reached lately.
func (d *delivery) unlessItRests(ctx context.Context, b *batch) {
	name, began := d.to.ID+" "+b.exchanges, d.s.o.Now()
	if e := d.s.rests.ask(name, began); e != nil {
		d.fail(b.open, e)
		return
	}
	all := slices.Clone(b.open)
	d.deliver(ctx, b)
	if d.stopped != nil || ctx.Err() != nil {
		return // that says nothing about the servers
	}
	if why := d.unreached(all); d.s.rests.learn(name, why, began, d.s.o.Now()) {
		d.s.o.Logger.WarnContext(ctx, "servers of a domain rest", "gateway", d.to.ID, "domain", b.domain, "error",
			why)
	}
}

// longestSearch bounds the time for a batch: after it no third host is tried, so that dead hosts don't hold
// up the message's other domains.
const longestSearch = 2 * time.Minute

// deliver offers the message to the hosts of a batch, until each recipient has a final answer.
func (d *delivery) deliver(ctx context.Context, b *batch) {
	begun := d.s.o.Now()
	for i := range b.hosts {
		if len(b.open) == 0 || d.stopped != nil {
			return
		}
		if ctx.Err() != nil || i > 1 && d.s.o.Now().Sub(begun) > longestSearch {
			break
		}
		if d.announce(ctx); d.stopped != nil {
			return
		}
		d.visit(ctx, b, &b.hosts[i])
	}
	if ctx.Err() != nil {
		e := silent(smtpsend.PhaseConnect, smtpsend.Soft, context.Cause(ctx))
		e.Scope = smtpsend.ScopeConnection
		d.candidate(b.open, e)
	}
	for _, i := range b.open {
		d.final[i] = true
	}
}

// visit offers the message to one host, at its second address only if it can't be reached at the first.
func (d *delivery) visit(ctx context.Context, b *batch, h *host) {
	p, failure := d.protect(ctx, b, h)
	if failure != nil {
		d.refuse(b, h, p, failure)
		return
	}
	hops := d.hops(ctx, b, h)
	if len(hops) == 0 {
		d.refuse(b, h, p, silent(smtpsend.PhaseConnect, smtpsend.Soft, fmt.Errorf("%s: %w", h.name, errNoFamily)))
	}
	again := true
	for i := 0; i < len(hops) && len(b.open) > 0 && d.stopped == nil && ctx.Err() == nil; {
		failure := d.try(ctx, b, h, hops[i], p)
		switch {
		case failure == nil:
			return
		case failure.Reconnect && again: // only the connection was the cause
			again = false
		case p.fallback && aboutTLS(failure):
			p = d.without(p)
		case failure.Phase == smtpsend.PhaseConnect, errors.Is(failure, dialing.ErrRefused),
			errors.Is(failure, smtpsend.ErrTLSA):
			i++
		default:
			return
		}
	}
}

// try offers the message to one address, for the open recipients. If no recipient has a final answer by it,
// it returns the whole offer's failure.
func (d *delivery) try(ctx context.Context, b *batch, h *host, to hop, p protection) *smtpsend.Error {
	relay := d.relay(h, to, p)
	open := b.open
	r, err := d.s.o.SMTP.Send(ctx, relay, d.part(open))
	failure, _ := errors.AsType[*smtpsend.Error](err)
	d.s.metrics.observe(p.policy, &r, failure)
	if r.TLSFailed != nil && !r.Reused {
		d.s.broken.put(relay.Host, true, d.s.o.Now().Add(brokenFor))
	}
	d.s.o.Logger.DebugContext(ctx, "host tried", "gateway", d.to.ID, "domain", b.domain, "host", h.name,
		"address",
		relay.Host, "source", relay.LocalAddress, "policy", p.name, "tls", r.TLS, "error", err)
	d.merge(&r)
	b.open = nil
	for n, i := range open {
		e := r.Recipients[n].Err
		if e == nil {
			d.result.Recipients[i], d.final[i] = r.Recipients[n], true
			continue
		}
		judged, final := judge(e)
		d.final[i] = final || d.stopped != nil
		if d.final[i] {
			d.result.Recipients[i].Err, d.result.Recipients[i].Response = judged, judged.Line
		} else {
			d.candidate([]int{i}, judged)
			b.open = append(b.open, i)
		}
	}
	if failure == nil || len(b.open) < len(open) {
		return nil
	}
	d.note(h, to, p, failure)
	return failure
}

// refuse is a host that must not be used.
func (d *delivery) refuse(b *batch, h *host, p protection, e *smtpsend.Error) {
	d.note(h, hop{}, p, e)
	d.candidate(b.open, e)
}

// part returns the message for some of its recipients, with callbacks that end the delivery when they fail.
func (d *delivery) part(open []int) smtpsend.Message {
	m := d.m
	m.To = make([]string, len(open))
	for n, i := range open {
		m.To[n] = d.m.To[i]
	}
	if m.BeforeDot != nil {
		m.BeforeDot = func(ctx context.Context, accepted []string) error {
			return d.stop(smtpsend.ErrAborted, d.m.BeforeDot(ctx, accepted))
		}
	}
	if m.AtDot != nil {
		m.AtDot = func() error { return d.stop(smtpsend.ErrAborted, d.m.AtDot()) }
	}
	if m.Answered != nil {
		m.Answered = func(ctx context.Context, done []smtpsend.RecipientResult) error {
			results := d.standing()
			for _, r := range done {
				if r.Err == nil {
					results = append(results, r)
				} else if e, final := judge(r.Err); final {
					r.Err = e
					results = append(results, r)
				}
			}
			return d.stop(errUnrecorded, d.m.Answered(ctx, results))
		}
	}
	return m
}

// standing returns the results that are final so far.
func (d *delivery) standing() (done []smtpsend.RecipientResult) {
	for i, r := range d.result.Recipients {
		if d.final[i] {
			done = append(done, r)
		}
	}
	return done
}

// announce calls Answered before a further transaction, if there are new results.
func (d *delivery) announce(ctx context.Context) {
	done := d.standing()
	if d.m.Answered == nil || len(done) == d.told {
		return
	}
	d.told = len(done)
	_ = d.stop(errUnrecorded, d.m.Answered(ctx, done))
}

// errUnrecorded is the cause when Answered failed.
var errUnrecorded = errors.New("not sent: the caller could not record the results of other recipients")

// stop ends the delivery if a callback failed, and returns its error.
func (d *delivery) stop(cause, err error) error {
	if err != nil && d.stopped == nil {
		d.stopped = &smtpsend.Error{Phase: smtpsend.PhaseMail, Verdict: smtpsend.Soft, Scope: smtpsend.ScopeMessage,
			Err: fmt.Errorf("%w: %w", cause, err)}
	}
	return err
}

// candidate gives recipients a failure that another host may replace.
func (d *delivery) candidate(to []int, e *smtpsend.Error) {
	for _, i := range to {
		r := &d.result.Recipients[i]
		r.Err = better(r.Err, e)
		r.Response = r.Err.Line
	}
}

// fail gives recipients a failure that stands.
func (d *delivery) fail(to []int, e *smtpsend.Error) {
	for _, i := range to {
		if !d.final[i] {
			d.result.Recipients[i].Err, d.result.Recipients[i].Response = e, e.Line
			d.final[i] = true
		}
	}
}

// merge adds the facts about one connection to the result.
func (d *delivery) merge(r *smtpsend.Result) {
	all, t := &d.result, r.Timings
	all.Timings.Wait += t.Wait
	all.Timings.Connect += t.Connect
	all.Timings.TLS += t.TLS
	all.Timings.Mail += t.Mail
	all.Timings.Rcpt += t.Rcpt
	all.Timings.Data += t.Data
	all.Timings.Body += t.Body
	all.Timings.Dot += t.Dot
	if r.Code != 0 {
		all.Response, all.Code = r.Response, r.Code
	}
	if r.RemoteAddress != "" {
		all.RemoteName, all.RemoteAddress, all.TLS = r.RemoteName, r.RemoteAddress, r.TLS
		all.TLSFailed, all.Reused = r.TLSFailed, r.Reused
	}
	if len(r.Dialogue) > 0 {
		d.dialogue = r.Dialogue
	}
}

// Bounds of the notes about hosts.
const (
	mostNotes   = 12
	longestNote = 200
)

// note adds a host that failed to the dialogue.
func (d *delivery) note(h *host, to hop, p protection, e *smtpsend.Error) {
	text := h.name
	if to.address.IsValid() {
		text += " [" + to.address.String() + "]"
	}
	if len(d.notes) < mostNotes {
		d.notes = append(d.notes, smtpsend.DialogueLine{At: max(0, d.s.o.Now().Sub(d.begun)),
			From: smtpsend.FromNote,
			Text: message.OneLine(text+" ("+p.name+"): "+e.Error(), longestNote)})
	}
}

// finish returns the result of all recipients and the error of the whole message.
func (d *delivery) finish() (smtpsend.Result, error) {
	err := d.result.Err()
	if slices.ContainsFunc(d.result.Recipients, func(r smtpsend.RecipientResult) bool { return r.Err != nil }) {
		d.result.Dialogue = slices.Concat(d.notes, d.dialogue)
	}
	if e, ok := errors.AsType[*smtpsend.Error](err); ok && d.result.Code == 0 {
		d.result.Response, d.result.Code = cmp.Or(d.result.Response, e.Line), e.Code
	}
	return d.result, err
}
