package apisend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
)

// Options tunes a Sender. The zero value works.
type Options struct {
	// longest wait for a request to leave, and then for its answer; defaults to 120 s
	Timeout time.Duration
	// Guard judges the addresses that are dialed; nil if it permits private ones
	Guard *dialing.Guard
	// Admit is called before each request to a target with Shared set, so that processes count their requests
	// together. It is as in smtpsend.Options.
	Admit func(ctx context.Context, t Target) (release func(), err error)
	// Wait waits before a request is repeated, and reports false if ctx ends first; nil waits by the clock
	Wait     func(ctx context.Context, d time.Duration) bool
	Now      func() time.Time      // the clock, for tests; defaults to time.Now
	Registry prometheus.Registerer // nil to measure nothing
	Logger   *slog.Logger          // nil to discard
}

// Sender sends messages through the APIs of providers. It is safe for concurrent use.
type Sender struct {
	o       Options
	slots   slots
	batches batches
	metrics *metrics
	machine machine

	mu      sync.Mutex
	clients map[string]*http.Client // by the URL of their proxy
}

// New makes a Sender. It fails if the metrics can't be registered.
func New(o Options) (*Sender, error) {
	if o.Timeout <= 0 {
		o.Timeout = 120 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Guard == nil {
		o.Guard = dialing.New(dialing.Options{AllowPrivate: true, Logger: o.Logger})
	}
	s := &Sender{o: o, slots: slots{all: map[Target]*slot{}}, clients: map[string]*http.Client{},
		batches: batches{open: map[batchKey]*batch{}}}
	var err error
	s.metrics, err = telemetry.Try(func() *metrics { return newMetrics(o.Registry) })
	return s, err
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// client returns the client for requests through a proxy, or directly if it is empty.
func (s *Sender) client(proxy string) *http.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.clients[proxy]
	if c == nil {
		c = s.o.Guard.Client(dialing.HTTP{PerHost: 64, Proxy: proxy})
		s.clients[proxy] = c
	}
	return c
}

// Close closes the connections that are not in use.
func (s *Sender) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.CloseIdleConnections()
	}
}

// Send hands m to the provider and waits for the result, which always lists every recipient. The error is nil
// if at least one recipient was taken. Otherwise it is an *smtpsend.Error for the whole message, which is not
// Permanent if any recipient's is not.
func (s *Sender) Send(ctx context.Context, t Target, m smtpsend.Message) (smtpsend.Result, error) {
	d := newDelivery(s, t, m)
	if err := d.load(ctx); err != nil {
		d.failRest(err)
	} else {
		d.run(ctx)
	}
	s.metrics.observe(t.Type, &d.result)
	return d.result, d.result.Err()
}

// Verify makes a harmless request that shows whether the key is good. The error is an *smtpsend.Error.
func (s *Sender) Verify(ctx context.Context, t Target) error {
	a := adapters[t.Type]
	if a == nil {
		return smtpsend.Refused(fmt.Errorf("unknown type %q", t.Type))
	}
	q := a.check(t)
	if q.method == "" && q.body == nil {
		q.method = http.MethodGet
	}
	out := s.try(ctx, t, q, group{}, nil)
	if out.err != nil {
		return out.err
	}
	if r := out.x.checked(); r != nil {
		return out.x.failure(*r)
	}
	return nil
}

// checked returns the answer's objection to the account in a check, or nil.
func (x *exchange) checked() *refusal {
	a := x.adapter
	switch {
	case a.fine != nil && a.fine(x), x.ok() && a.checked == nil:
		return nil
	case x.ok():
		return a.checked(x)
	}
	return x.against()
}

// against returns what an answer without 2xx says.
func (x *exchange) against() *refusal {
	if said := x.adapter.read(x); said.refusal != nil && !said.unreadable {
		return said.refusal
	}
	m, known := byStatus(x.status, true)
	if !known {
		m = laterMessage
	}
	return &refusal{meaning: m, text: http.StatusText(x.status)}
}

// delivery is one call of Send.
type delivery struct {
	s      *Sender
	t      Target
	a      *adapter
	m      *mail
	result smtpsend.Result
	at     map[string][]int // recipients by fold of their address, as indexes into result.Recipients
	open   []string         // recipients without a result, in their order
	most   int              // recipients of one request; 0 means any number
}

func newDelivery(s *Sender, t Target, m smtpsend.Message) *delivery {
	d := &delivery{s: s, t: t, a: adapters[t.Type], m: &mail{Message: m}, at: map[string][]int{}}
	if d.a != nil {
		d.most = d.a.most
	}
	d.result.Recipients = make([]smtpsend.RecipientResult, len(m.To))
	d.open = m.To
	for i, to := range m.To {
		d.result.Recipients[i].Address = to
		d.at[fold(to)] = append(d.at[fold(to)], i)
	}
	return d
}

// load reads the content, and refuses what the API can't carry.
func (d *delivery) load(ctx context.Context) *smtpsend.Error {
	if d.a == nil {
		return smtpsend.Refused(fmt.Errorf("unknown type %q", d.t.Type))
	}
	if err := d.m.Check(); err != nil {
		return err
	}
	if lack := d.a.fits(d.t, d.m.Body.Size()); lack != nil {
		return lack.uncarried()
	}
	content, err := d.m.Body.Open(ctx)
	if err == nil {
		d.m.raw, err = io.ReadAll(content)
		err = cmp.Or(err, content.Close())
	}
	if err != nil {
		return &smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeMessage, Err: fmt.Errorf("read the content: %w", err)}
	}
	return d.a.carries(d.t, d.m).uncarried()
}

// mostRounds bounds the rounds of requests after answers that refused recipients because of others. It is
// enough to find one among a thousand by halves.
const mostRounds = 12

// run sends request after request until every recipient has a result.
func (d *delivery) run(ctx context.Context) {
	for round := 1; len(d.open) > 0; round++ {
		before, most := len(d.open), d.most
		for _, g := range d.groups() {
			if failure := d.send(ctx, g); failure != nil {
				d.failRest(failure)
				return
			}
			if failure := d.announce(ctx); failure != nil {
				d.failRest(failure)
				return
			}
		}
		if len(d.open) > 0 && (round == mostRounds || len(d.open) == before && d.most == most) {
			d.failRest(&smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseDot, Verdict: smtpsend.Soft,
				Scope: smtpsend.ScopeMessage, Err: errors.New("refused together with other recipients, again and again")})
		}
	}
}

// groups groups the open recipients into requests.
func (d *delivery) groups() []group {
	if d.a.apart {
		return d.m.parts.recipients(d.open, cmp.Or(d.most, len(d.open)))
	}
	return chunks(d.open, d.most)
}

// announce calls Answered with the results so far, if recipients are left.
func (d *delivery) announce(ctx context.Context) *smtpsend.Error {
	if d.m.Answered == nil || len(d.open) == 0 {
		return nil
	}
	var done []smtpsend.RecipientResult
	for _, r := range d.result.Recipients {
		if r.Err != nil || r.Response != "" {
			done = append(done, r)
		}
	}
	if err := d.m.Answered(ctx, done); err != nil {
		return &smtpsend.Error{Protocol: protocol, Phase: smtpsend.PhaseMail, Verdict: smtpsend.Soft,
			Scope: smtpsend.ScopeMessage, Err: fmt.Errorf("results not recorded: %w", err)}
	}
	return nil
}

// send sends the message to some recipients, and records their results. It returns the error of a gateway
// that need not be asked again for the others.
func (d *delivery) send(ctx context.Context, g group) *smtpsend.Error {
	to := g.all()
	d.m.key = d.key(to)
	q, err := d.a.request(d.t, d.m, g)
	if err != nil {
		return (&Lack{Gateway: d.t.ID, Why: "makes no request: " + err.Error()}).uncarried()
	}
	var out sent
	if d.lists(q) {
		out = d.s.gather(d.t, &member{ctx: ctx, m: d.m.Message, q: q, group: g}, d.m.parts.from.Address)
	} else {
		out = d.alone(ctx, q, g)
	}
	d.result.Timings.Wait += out.wait
	if out.unsent != nil {
		return out.unsent
	}
	d.result.Timings.Body += out.body
	d.result.Timings.Dot += out.dot
	d.result.RemoteName, d.result.TLS, d.result.Reused = d.t.Host(), out.tls, out.reused
	if out.err != nil {
		d.give(to, recipient{}, out.err)
		return d.forAll(out.err)
	}
	return d.judge(out.x)
}

// lists reports whether a request may be one with other messages. One that can settle a doubt goes alone: it
// has to be the same again.
func (d *delivery) lists(q request) bool {
	return d.t.list() > 1 && q.item != nil && (d.a.remembers == 0 || !d.m.Labels.Doubted)
}

// key names a request in a way that another one never has: by the message, the recipients, and how many
// attempts were answered before.
func (d *delivery) key(to []string) string {
	if d.m.Labels.ID == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(to, "\n")))
	return fmt.Sprintf("%s-%d-%s", d.m.Labels.ID, d.m.Labels.Answered+1, hex.EncodeToString(sum[:6]))
}

// judge records what an answer says. It returns the error of a gateway that need not be asked again.
func (d *delivery) judge(x *exchange) *smtpsend.Error {
	if d.a.reset != nil && x.usedUp() {
		d.s.slots.rests(d.t, x.now.Add(min(max(d.a.reset(x.header, x.now), 0), time.Minute)))
	}
	a := d.a.read(x)
	if a.unreadable {
		m, known := byStatus(x.status, false)
		if !known {
			d.s.o.Logger.Warn("the answer is not the API's", "gateway", d.t.ID, "status", x.status, "bytes",
				len(x.body))
			d.give(x.to, recipient{}, x.doubt(x.strange()))
			return nil
		}
		a = answer{refusal: &refusal{meaning: m, text: http.StatusText(x.status)}}
	}
	if n := len(x.to); a.unnamed && n > 1 {
		d.most = min((n+1)/2, cmp.Or(d.most, n))
		return nil
	}
	d.result.Response, d.result.Code = x.accepted(), 250
	if a.refusal != nil {
		e := x.failure(*a.refusal)
		d.result.Response, d.result.Code = e.Line, e.Code
		if len(a.each) == 0 {
			d.give(x.to, recipient{}, e)
			return d.forAll(e)
		}
	}
	d.foreign(x, a)
	for _, to := range x.to {
		one, named := a.each[fold(to)]
		switch {
		case named && one.doubt != nil:
			d.give([]string{to}, one, x.doubt(one.doubt))
		case named && one.refusal != nil:
			d.give([]string{to}, one, x.failure(*one.refusal))
		case named:
			d.give([]string{to}, one, nil)
		case a.again:
		case a.listed:
			d.give([]string{to}, one, x.doubt(errUnnamed))
		case a.refusal != nil:
			d.give([]string{to}, one, x.failure(*a.refusal))
		default:
			d.give([]string{to}, recipient{id: a.id}, nil)
		}
		if named && one.refusal == nil && one.doubt == nil {
			d.result.Response, d.result.Code = x.accepted(), 250
		}
	}
	return nil
}

// foreign counts recipients that an answer names and the message did not have.
func (d *delivery) foreign(x *exchange, a answer) {
	for address := range a.each {
		if d.at[address] == nil {
			d.s.metrics.foreign.Inc()
			d.s.o.Logger.Warn("the answer names a recipient that the message did not have", "gateway", d.t.ID)
		}
	}
}

// accepted is the reply of a provider that took a message, as one line.
func (x *exchange) accepted() string {
	return fmt.Sprintf("%d %s", x.status, cmp.Or(http.StatusText(x.status), "taken"))
}

// give records the result of recipients.
func (d *delivery) give(to []string, r recipient, err *smtpsend.Error) {
	for _, address := range to {
		for _, i := range d.at[fold(address)] {
			one := &d.result.Recipients[i]
			one.ProviderID, one.Err = r.id, err
			if err == nil {
				one.Response = d.result.Response
				if r.id != "" {
					one.Response += " " + r.id
				}
			} else {
				one.Response = err.Line
			}
		}
	}
	var open []string
	for _, address := range d.open {
		r := d.result.Recipients[d.at[fold(address)][0]]
		if r.Err == nil && r.Response == "" {
			open = append(open, address)
		}
	}
	d.open = open
}

// forAll returns an error that also speaks for the remaining recipients, or nil if the caller tries them.
func (d *delivery) forAll(e *smtpsend.Error) *smtpsend.Error {
	if e.Scope == smtpsend.ScopeRecipient || e.Scope == smtpsend.ScopeDomain || e.InDoubt {
		return nil
	}
	return e
}

// failRest gives an error to the recipients without a result.
func (d *delivery) failRest(e *smtpsend.Error) {
	d.give(d.open, recipient{}, e)
	d.open = nil
}
