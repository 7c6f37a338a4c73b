package mxsend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/smtpsend"
)

// Bounds of one attempt (RFC 5321 section 5.1 wants at least two addresses).
const (
	mostHosts     = 5
	mostAddresses = 2
)

// host is a mail server of a domain.
type host struct {
	name       string // as the MX record has it, in lower case, without a dot at the end
	canonical  string // what its aliases lead to
	preference uint16
	addresses  []netip.Addr
	authentic  bool  // DNSSEC proves the MX record and the addresses
	err        error // why it has no address
	missing    bool  // because the DNS has none
}

// destination is where mail for a domain goes.
type destination struct {
	domain    string
	hosts     []host // by preference, random among equals; at most mostHosts
	exchanges string // all MX records with their preferences, sorted
	literal   bool   // the domain is an address
	authentic bool   // DNSSEC proves the MX records
	policy    Policy
}

// resolve finds the servers of a domain. own are addresses and names of this machine.
func (s *Sender) resolve(ctx context.Context, domain string, own identity) (*destination, *smtpsend.Error) {
	if address, ok := literal(domain); ok {
		return &destination{domain: domain, exchanges: domain, literal: true, hosts: []host{{name: domain,
			canonical: domain, addresses: []netip.Addr{address}}}}, nil
	}
	if !smtpsend.ValidHost(domain) {
		return nil, answered(553, "5.1.3", smtpsend.Policy, smtpsend.ScopeRecipient, domain+" isn't a domain")
	}
	d, failure := s.exchanges(ctx, domain)
	if failure != nil {
		return nil, failure
	}
	if failure := s.locate(ctx, d, own); failure != nil {
		return nil, failure
	}
	s.absent.forget(domain)
	d.policy = s.policy(ctx, domain)
	return d, nil
}

// literal returns the address in a domain such as [192.0.2.1] or [IPv6:2001:db8::1] (RFC 5321 section
// 4.1.3).
func literal(domain string) (netip.Addr, bool) {
	inner, opened := strings.CutPrefix(domain, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if len(inner) > 5 && strings.EqualFold(inner[:5], "IPv6:") {
		inner = inner[5:]
	}
	address, err := netip.ParseAddr(inner)
	return address, opened && closed && err == nil && address.Zone() == ""
}

// exchanges looks up the MX records of a domain. Without any the domain itself is the host (implicit MX).
func (s *Sender) exchanges(ctx context.Context, domain string) (*destination, *smtpsend.Error) {
	answer, err := s.o.Resolver.Ask(ctx, domain, dns.TypeMX)
	switch {
	case err != nil:
		return nil, unresolved(domain, err)
	case answer.Missing:
		return nil, s.missing(ctx, domain, "5.1.2", "the domain doesn't exist")
	}
	d := &destination{domain: domain, authentic: answer.Authentic}
	for _, record := range answer.Records {
		mx, ok := record.(*dns.MX)
		if !ok || mx.Mx == "." && len(answer.Records) > 1 {
			continue // RFC 7505 section 3: a null MX is the only one
		}
		if name := hostName(mx.Mx); name == "" || smtpsend.ValidHost(name) {
			d.hosts = append(d.hosts, host{name: name, preference: mx.Preference})
		}
	}
	switch {
	case len(answer.Records) == 0:
		d.hosts = []host{{name: hostName(domain)}}
	case len(d.hosts) == 0:
		return nil, s.missing(ctx, domain, "5.4.4", "its MX records don't name a host")
	case d.hosts[0].name == "":
		e := answered(556, "5.1.10", smtpsend.Hard, smtpsend.ScopeRecipient, domain+" accepts no mail (null MX)")
		e.Suppress = true
		return nil, e
	}
	texts := make([]string, len(d.hosts))
	for i, h := range d.hosts {
		texts[i] = fmt.Sprintf("%d %s", h.preference, h.name)
	}
	slices.Sort(texts)
	d.exchanges = strings.Join(slices.Compact(texts), ",")
	s.o.Shuffle(len(d.hosts), func(i, j int) { d.hosts[i], d.hosts[j] = d.hosts[j], d.hosts[i] })
	slices.SortStableFunc(d.hosts, func(a, b host) int { return cmp.Compare(a.preference, b.preference) })
	return d, nil
}

func hostName(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// locate finds the addresses of the hosts, and leaves out this machine and the hosts behind it (RFC 5321
// section 5.1). Names without an address don't count among the hosts of an attempt.
func (s *Sender) locate(ctx context.Context, d *destination, own identity) *smtpsend.Error {
	var found, lost []host
	for rest := d.hosts; len(rest) > 0 && len(found) < mostHosts && len(lost) < 2*mostHosts; {
		n := 1
		for n < len(rest) && n < 2*mostHosts && rest[n].preference == rest[0].preference {
			n++
		}
		equals := rest[:n]
		rest = rest[n:]
		var all sync.WaitGroup
		for i := range equals {
			all.Go(func() { s.find(ctx, &equals[i], d.authentic) })
		}
		all.Wait()
		if slices.ContainsFunc(equals, own.is) {
			if len(found) == 0 && len(lost) == 0 {
				return answered(554, "5.4.6", smtpsend.Policy, smtpsend.ScopeDestination,
					"the best mail server of "+d.domain+" is this machine, which would send the message to itself")
			}
			break
		}
		for _, h := range equals {
			if h.err == nil {
				found = append(found, h)
			} else {
				lost = append(lost, h)
			}
		}
	}
	if d.hosts = found[:min(len(found), mostHosts)]; len(d.hosts) > 0 {
		return nil
	}
	for _, h := range lost {
		if !h.missing {
			return unresolved(h.name, h.err)
		}
	}
	return s.missing(ctx, d.domain, "5.4.4", "its mail servers have no address")
}

// find looks up the addresses of a host: IPv6 and IPv4 in turn (RFC 3974).
func (s *Sender) find(ctx context.Context, h *host, authentic bool) {
	var six, four []netip.Addr
	h.authentic, h.canonical = authentic, h.name
	failure := error(errNoAddress)
	h.missing = true
	for _, qtype := range []uint16{dns.TypeAAAA, dns.TypeA} {
		answer, err := s.o.Resolver.Ask(ctx, h.name, qtype)
		if err != nil {
			failure, h.missing = err, false
			continue
		}
		h.authentic = h.authentic && answer.Authentic
		h.canonical = hostName(answer.Name)
		for _, record := range answer.Records {
			switch r := record.(type) {
			case *dns.AAAA:
				six = addressTo(six, r.AAAA)
			case *dns.A:
				four = addressTo(four, r.A)
			}
		}
	}
	for _, family := range [][]netip.Addr{six, four} {
		s.o.Shuffle(len(family), func(i, j int) { family[i], family[j] = family[j], family[i] })
	}
	for i := range max(len(six), len(four)) {
		h.addresses = append(h.addresses, six[min(i, len(six)):min(i+1, len(six))]...)
		h.addresses = append(h.addresses, four[min(i, len(four)):min(i+1, len(four))]...)
	}
	if len(h.addresses) == 0 {
		h.err = failure
	}
}

var errNoAddress = errors.New("the host has no address")

func addressTo(list []netip.Addr, ip net.IP) []netip.Addr {
	if address, ok := netip.AddrFromSlice(ip); ok {
		list = append(list, address.Unmap())
	}
	return list
}

// identity has this machine's names and addresses.
type identity struct {
	addresses map[netip.Addr]bool // without loopback, which is the guard's affair
	names     map[string]bool
}

// is reports whether a host is this machine.
func (i identity) is(h host) bool {
	return i.names[h.name] || i.names[h.canonical] ||
		slices.ContainsFunc(h.addresses, func(a netip.Addr) bool { return i.addresses[a] })
}

// identify returns the addresses of this machine's interfaces, and the target's with their names.
func identify(sources []Source) identity {
	i := identity{map[netip.Addr]bool{}, map[string]bool{}}
	for _, address := range machineAddresses() {
		i.addresses[address] = true
	}
	for _, s := range sources {
		i.names[hostName(s.Name)] = true
		if !s.Address.IsLoopback() {
			i.addresses[s.Address] = true
		}
	}
	return i
}

// machineAddresses returns the addresses of this machine's interfaces, without loopback and link-local
// ones.
func machineAddresses() (all []netip.Addr) {
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, one := range interfaces {
		prefix, err := netip.ParsePrefix(one.String())
		if address := prefix.Addr().Unmap(); err == nil && !address.IsLoopback() && !address.IsLinkLocalUnicast() {
			all = append(all, address)
		}
	}
	return all
}

// Bounds of the memory of domains that don't exist.
const (
	secondLook = time.Hour
	absentFor  = 24 * time.Hour
	mostAbsent = 50_000
)

// missing is a domain that doesn't exist, or has no server. It is permanent if it was missing an hour ago
// too: a zone may be broken for a while.
func (s *Sender) missing(ctx context.Context, domain, enhanced, why string) *smtpsend.Error {
	now := s.o.Now()
	since, known := s.absent.get(domain, now)
	if !known {
		since = now
		s.absent.put(domain, now, now.Add(absentFor))
	}
	if wait := secondLook - now.Sub(since); wait > 0 {
		e := silent(smtpsend.PhaseDNS, smtpsend.Soft, fmt.Errorf("%s: %s", domain, why))
		e.RetryAfter = max(wait, time.Minute)
		return e
	}
	// The name servers of closed networks say of every name that it doesn't exist.
	if answer, err := s.o.Resolver.Ask(ctx, "com", dns.TypeNS); err != nil || answer.Missing {
		return silent(smtpsend.PhaseDNS, smtpsend.Soft,
			fmt.Errorf("%s: %s, but this machine's DNS doesn't know com either", domain, why))
	}
	return answered(550, enhanced, smtpsend.Hard, smtpsend.ScopeRecipient, domain+": "+why)
}

// unresolved is a look-up that failed and may work later.
func unresolved(name string, err error) *smtpsend.Error {
	return silent(smtpsend.PhaseDNS, smtpsend.Soft, fmt.Errorf("looking up %s: %w", name, err))
}

// answered is a failure that the DNS itself states, worded like a mail server's reply.
func answered(code int, enhanced string, v smtpsend.Verdict, scope smtpsend.Scope,
	why string) *smtpsend.Error {
	return &smtpsend.Error{Phase: smtpsend.PhaseDNS, Code: code, Enhanced: enhanced, Verdict: v, Scope: scope,
		Line: fmt.Sprintf("%d %s %s", code, enhanced, why)}
}

// silent is a failure about a destination without a server's answer.
func silent(p smtpsend.Phase, v smtpsend.Verdict, err error) *smtpsend.Error {
	return &smtpsend.Error{Phase: p, Verdict: v, Scope: smtpsend.ScopeDestination, Err: err}
}
