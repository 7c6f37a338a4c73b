package mxsend

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/postroom/postroom/internal/dialing"
	"github.com/postroom/postroom/smtpsend"
)

// protection is the requirement for connections to one host.
type protection struct {
	policy   string // policyTLSA, policySTS or policyNone, for the metric
	name     string // for the log
	tls      smtpsend.TLSMode
	verify   bool // the certificate, by the public authorities
	tlsa     string
	names    string // that the certificate may have, as [smtpsend.Relay.TLSName]
	fallback bool   // after a failure of TLS, once more without the policy (mode testing)
}

// Bounds of the memory of hosts whose TLS fails.
const (
	brokenFor  = time.Hour
	mostBroken = 10_000
)

// mostNames is how many domains of a batch are accepted in a certificate that a DANE authority has signed.
const mostNames = 20

// protect decides what connections to a host need: DANE, else MTA-STS, else as much TLS as the server can
// do. It fails if the host must not be used.
func (d *delivery) protect(ctx context.Context, b *batch, h *host) (protection, *smtpsend.Error) {
	p := protection{policy: policyNone, name: "opportunistic", tls: smtpsend.TLSOpportunistic, names: h.name}
	records, err := d.s.tlsa(ctx, h)
	permitted := b.policy.permits(h.name)
	switch {
	case err != nil:
		d.s.metrics.count(policyTLSA, "dnssec-invalid")
		return p, silent(smtpsend.PhaseDNS, smtpsend.Soft, fmt.Errorf("looking up the TLSA records of %s: %w",
			h.name,
			err))
	case records.records != "":
		p = protection{policy: policyTLSA, name: "dane", tls: smtpsend.TLSRequired, tlsa: records.records,
			names: records.base}
		if records.authority {
			p.names = strings.Join(append([]string{records.base}, b.domains[:min(len(b.domains), mostNames)]...), " ")
		}
		return p, nil
	case b.policy.Mode == Enforce && !permitted:
		d.s.metrics.count(policySTS, "validation-failure")
		return p, silent(smtpsend.PhaseTLS, smtpsend.Soft, fmt.Errorf("the MTA-STS policy of %s doesn't name %s",
			b.domain, h.name))
	case b.policy.Mode == Enforce:
		p = protection{policy: policySTS, name: "mta-sts", tls: smtpsend.TLSRequired, verify: true, names: h.name}
	case records.unusable: // RFC 7672 section 2.2: encrypt, and verify nothing
		d.s.metrics.count(policyTLSA, "tlsa-invalid")
		p = protection{policy: policyTLSA, name: "dane without usable records", tls: smtpsend.TLSRequired,
			names: h.name}
	case b.policy.Mode == Testing && permitted:
		p = protection{policy: policySTS, name: "mta-sts in testing", tls: smtpsend.TLSRequired, verify: true,
			names: h.name, fallback: true}
	case b.policy.Mode == Testing:
		d.s.metrics.count(policySTS, "validation-failure")
	}
	return d.strengthen(b, h, p, permitted)
}

// strengthen adds what target and message ask for.
func (d *delivery) strengthen(b *batch, h *host, p protection, permitted bool) (protection, *smtpsend.Error) {
	if d.m.RequireTLS {
		if !h.authentic && !permitted { // RFC 8689 section 4.2.1
			return p, &smtpsend.Error{Phase: smtpsend.PhaseTLS, Verdict: smtpsend.Policy, Scope: smtpsend.ScopeMessage,
				Err: fmt.Errorf("the message requires REQUIRETLS, but neither DNSSEC nor MTA-STS proves that %s is a "+
					"server of %s", h.name, b.domain)}
		}
		// smtpsend insists on TLS, and blames the message if there is none.
		p.verify, p.fallback = true, false
	} else if p.tls == smtpsend.TLSOpportunistic && d.to.TLS == TLSRequired {
		p.name, p.tls = "required", smtpsend.TLSRequired
	}
	return p, nil
}

// without returns the protection for the second try of a testing policy.
func (d *delivery) without(p protection) protection {
	p = protection{policy: policyNone, name: "opportunistic", tls: smtpsend.TLSOpportunistic, names: p.names}
	if d.to.TLS == TLSRequired {
		p.name, p.tls = "required", smtpsend.TLSRequired
	}
	return p
}

// hop is one way to a host.
type hop struct {
	address netip.Addr
	source  Source // zero if the system chooses
}

// hops returns the addresses of a host that this machine can reach, each with its source: mostAddresses at
// most.
func (d *delivery) hops(ctx context.Context, b *batch, h *host) []hop {
	var out []hop
	for _, address := range h.addresses {
		if len(out) == mostAddresses {
			break
		}
		if len(d.sources) == 0 {
			if address.Is4() || d.ipv6(ctx) {
				out = append(out, hop{address: address})
			}
		} else if source, ok := d.source(ctx, b, address.Is6()); ok {
			out = append(out, hop{address, source})
		}
	}
	return out
}

// ipv6 reports whether the system's choice may be an IPv6 address: the machine has one with a name in the
// DNS.
func (d *delivery) ipv6(ctx context.Context) bool {
	if d.six == nil {
		yes := false
		for _, address := range machineAddresses() {
			yes = yes || address.Is6() && !address.IsPrivate() && d.s.hasPTR(ctx, address)
		}
		d.six = &yes
	}
	return *d.six
}

// source chooses the source address for a batch. Large receivers refuse IPv6 addresses without a PTR
// record.
func (d *delivery) source(ctx context.Context, b *batch, ipv6 bool) (Source, bool) {
	var usable []Source
	for _, s := range d.sources {
		if s.Address.Is4() || ipv6 && d.s.hasPTR(ctx, s.Address) {
			usable = append(usable, s)
		}
	}
	return choose(usable, ipv6, b.group, d.s.o.Now())
}

// relay returns the server at an address, as smtpsend wants it.
func (d *delivery) relay(h *host, to hop, p protection) smtpsend.Relay {
	r := smtpsend.Relay{ID: d.to.ID, Host: to.address.String(), Port: d.s.o.Port, TLS: p.tls, TLSName: p.names,
		TLSA: p.tlsa, InsecureSkipVerify: !p.verify && p.tlsa == "", EHLOName: to.source.Name,
		Connections: d.to.Connections, MessagesPerConnection: d.to.MessagesPerConnection}
	if to.source.Address.IsValid() {
		r.LocalAddress = to.source.Address.String()
	}
	if r.TLS == smtpsend.TLSAuto {
		r.TLS = smtpsend.TLSOpportunistic
	}
	if _, broken := d.s.broken.get(r.Host, d.s.o.Now()); broken && r.TLS == smtpsend.TLSOpportunistic &&
		!p.verify {
		r.TLS = smtpsend.TLSNone
	}
	if _, isAddress := literal(h.name); isAddress {
		r.TLSName = ""
	}
	return r
}

var errNoFamily = errors.New("no source address fits the addresses of the server")

// greylisted is how long a message waits after greylisting that names no time.
const greylisted = 5 * time.Minute

// judge returns what the failure of one host means for delivery to its domain. final: no other host is
// asked.
func judge(e *smtpsend.Error) (_ *smtpsend.Error, final bool) {
	out := *e
	mail := false // the server has seen the envelope
	switch e.Phase {
	case smtpsend.PhaseMail, smtpsend.PhaseRcpt, smtpsend.PhaseData, smtpsend.PhaseBody, smtpsend.PhaseDot:
		mail = true
	case smtpsend.PhaseCheck:
		mail = e.Scope != smtpsend.ScopeAccount // the message itself
	}
	switch {
	case errors.Is(e, syscall.EADDRNOTAVAIL):
		return &out, true // a source address that this machine doesn't have
	case errors.Is(e, dialing.ErrRefused):
		out.Verdict = smtpsend.Policy
	case e.Verdict == smtpsend.Auth && mail && e.Code >= 500:
		out.Verdict = smtpsend.Policy // it wants a login, which mail between servers doesn't have
	case e.Verdict == smtpsend.Auth:
		out.Verdict = smtpsend.Soft
	}
	switch e.Scope {
	case smtpsend.ScopeAccount, smtpsend.ScopeConnection, smtpsend.ScopeDomain:
		out.Scope = smtpsend.ScopeDestination
	}
	if out.Verdict == smtpsend.Soft && out.RetryAfter == 0 && greylists(e) {
		out.RetryAfter = greylisted
	}
	slows := e.Verdict == smtpsend.Throttle && (e.Code == 0 || e.Scope != smtpsend.ScopeConnection)
	return &out, e.InDoubt || slows || mail && out.Permanent()
}

// greylists reports whether a server refuses because it doesn't know us yet.
func greylists(e *smtpsend.Error) bool {
	if e.Phase != smtpsend.PhaseRcpt && e.Phase != smtpsend.PhaseData && e.Phase != smtpsend.PhaseDot {
		return false
	}
	return e.Code == 450 && e.Enhanced == "4.2.0" || e.Code == 451 && e.Enhanced == "4.7.1" ||
		smtpsend.Classify(smtpsend.Evidence{Phase: e.Phase, Code: e.Code, Enhanced: e.Enhanced,
			Text: e.Line}).Rule == "greylist"
}

// better returns the failure that says more about a recipient: one that may pass, and one with a reply.
func better(a, b *smtpsend.Error) *smtpsend.Error {
	rank := func(e *smtpsend.Error) (n int) {
		if !e.Permanent() {
			n = 2
		}
		if e.Code != 0 {
			n++
		}
		return n
	}
	if a != nil && rank(a) > rank(b) {
		return a
	}
	return b
}
