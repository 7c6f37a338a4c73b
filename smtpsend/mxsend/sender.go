package mxsend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"time"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postroom/postroom/internal/maildns"
	"github.com/postroom/postroom/internal/telemetry"
	"github.com/postroom/postroom/smtpsend"
)

// Options are the parts and settings of a Sender.
type Options struct {
	SMTP     *smtpsend.Sender // required; its guard judges the servers' addresses
	Resolver *maildns.Client  // required
	// HTTP fetches MTA-STS policies; it must not follow redirects. If nil, MTA-STS isn't used.
	HTTP     *http.Client
	Policies Policies // nil means in this process' memory

	Port  int    // the mail servers' port; 0 means 25. Tests have another
	Probe string // domain whose servers Verify connects to; defaults to gmail.com

	Now      func() time.Time                 // defaults to time.Now
	Shuffle  func(n int, swap func(i, j int)) // mixes equal hosts and addresses; nil mixes at random
	Logger   *slog.Logger                     // nil to discard
	Registry prometheus.Registerer            // nil to measure nothing
}

// Sender delivers messages to the mail servers of their recipients. It is safe for concurrent use.
type Sender struct {
	o         Options
	metrics   *metrics
	absent    *memory[time.Time] // domains that don't exist, and since when
	broken    *memory[bool]      // addresses of hosts whose TLS fails
	unfetched *memory[bool]      // domains whose policy isn't fetched again now
	rests     *rests
}

// New returns a Sender. It fails if a required part is missing, or if the metrics can't be registered.
func New(o Options) (*Sender, error) {
	if o.SMTP == nil || o.Resolver == nil {
		return nil, errors.New("mxsend: SMTP and Resolver are required")
	}
	o.Port = cmp.Or(o.Port, 25)
	o.Probe = cmp.Or(o.Probe, "gmail.com")
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Shuffle == nil {
		o.Shuffle = rand.Shuffle
	}
	if o.Policies == nil {
		o.Policies = PolicyMemory{newMemory[Policy](mostPolicies), o.Now}
	}
	s := &Sender{o: o, absent: newMemory[time.Time](mostAbsent), broken: newMemory[bool](mostBroken),
		unfetched: newMemory[bool](mostUnfetched), rests: &rests{all: newMemory[rest](mostRests)}}
	var err error
	s.metrics, err = telemetry.Try(func() *metrics { return newMetrics(o.Registry) })
	return s, err
}

// Send delivers m and waits for the results, which always list every recipient in the order of m.To. The
// error is nil if at least one recipient was delivered. Otherwise it is a *smtpsend.Error for the whole
// message, which is not Permanent if any recipient's is not.
func (s *Sender) Send(ctx context.Context, to Target, m smtpsend.Message) (smtpsend.Result, error) {
	d, err := s.newDelivery(to, m)
	if err != nil {
		e := &smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount,
			Err: fmt.Errorf("invalid target: %w", err)}
		d.fail(d.everybody(), e)
	} else {
		d.run(ctx)
	}
	return d.finish()
}

// Verify checks that this machine can deliver: from each source address it connects to a mail server of
// Options.Probe, and disconnects. The error is a *smtpsend.Error.
func (s *Sender) Verify(ctx context.Context, to Target) error {
	d, err := s.newDelivery(to, smtpsend.Message{})
	if err != nil {
		return &smtpsend.Error{Phase: smtpsend.PhaseCheck, Verdict: smtpsend.Auth, Scope: smtpsend.ScopeAccount,
			Err: fmt.Errorf("invalid target: %w", err)}
	}
	servers, failure := s.resolve(ctx, s.o.Probe, identity{})
	if failure != nil {
		return failure
	}
	sources := d.sources
	if len(sources) == 0 {
		sources = []Source{{}}
	}
	for _, source := range sources {
		if err := s.probe(ctx, d, source, servers); err != nil {
			return err
		}
	}
	return nil
}

// probe connects from one source address to one of some servers.
func (s *Sender) probe(ctx context.Context, d *delivery, source Source, servers *destination) error {
	var last error
	for i := range servers.hosts {
		h := &servers.hosts[i]
		for _, address := range h.addresses {
			if source.Address.IsValid() && source.Address.Is6() != address.Is6() {
				continue
			}
			last = s.o.SMTP.Verify(ctx, d.relay(h, hop{address, source}, protection{}))
			if last == nil {
				return nil
			}
		}
	}
	if last == nil {
		last = errNoFamily
	}
	if e, ok := errors.AsType[*smtpsend.Error](last); ok {
		return e
	}
	return silent(smtpsend.PhaseConnect, smtpsend.Soft, last)
}

// hasPTR reports whether an address has a name in the DNS. Without an answer it counts as having one.
func (s *Sender) hasPTR(ctx context.Context, address netip.Addr) bool {
	answer, err := s.o.Resolver.Ask(ctx, maildns.ReverseName(address), dns.TypePTR)
	return err != nil || len(answer.Records) > 0
}
