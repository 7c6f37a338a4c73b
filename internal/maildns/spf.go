package maildns

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// HostResolver looks up hosts too. *net.Resolver implements it.
type HostResolver interface {
	MailResolver
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	LookupAddr(ctx context.Context, address string) ([]string, error)
}

// SPFCovers checks that the SPF record of a domain lets an address send for it (RFC 7208 section 4).
func SPFCovers(ctx context.Context, r HostResolver, domain string, address netip.Addr) (Finding, error) {
	s := spf{r: r, address: address.Unmap()}
	result, err := s.check(ctx, domain)
	text := fmt.Sprintf("the SPF record of %s says %s for %s", domain, result, s.address)
	advice := "add ip4:" + s.address.String() + " to the TXT record that begins with v=spf1"
	if s.address.Is6() {
		advice = strings.Replace(advice, "ip4", "ip6", 1)
	}
	var broken spfError
	switch {
	case errors.As(err, &broken):
		return Finding{Fail, nil, "the SPF record of " + domain + " is invalid: " + string(broken), "correct it"},
			nil
	case err != nil:
		return Finding{}, err
	case s.macros:
		return Finding{Warn, nil, "the SPF record of " + domain + " has macros, which aren't evaluated here",
			"check it with a tool that does"}, nil
	case result == "pass":
		return Finding{OK, nil, text, ""}, nil
	case result == "fail":
		return Finding{Fail, nil, text, advice}, nil
	}
	return Finding{Warn, nil, text, advice}, nil
}

// spfError is the error of a record that receivers treat as broken (permerror).
type spfError string

// Error returns one line.
func (e spfError) Error() string { return string(e) }

// spf is one evaluation. It may cause mostSPFLookups further look-ups (RFC 7208 section 4.6.4).
type spf struct {
	r       HostResolver
	address netip.Addr
	lookups int
	macros  bool
}

const mostSPFLookups = 10

// spfResults are the results of a match by its qualifier.
var spfResults = map[byte]string{'+': "pass", '-': "fail", '~': "softfail", '?': "neutral"}

// check returns the result for a domain: pass, fail, softfail, neutral or none.
func (s *spf) check(ctx context.Context, domain string) (string, error) {
	records, err := TXT(ctx, s.r, domain, "v=spf1")
	switch {
	case err != nil:
		return "", err
	case len(records) == 0:
		return "none", nil
	case len(records) > 1:
		return "", spfError(fmt.Sprintf("%s has %d", domain, len(records)))
	}
	redirect := ""
	for _, term := range strings.Fields(records[0])[1:] {
		if name, value, ok := strings.Cut(term, "="); ok && !strings.ContainsAny(name, ":/") {
			if strings.EqualFold(name, "redirect") {
				redirect = value
			}
			continue // other modifiers change nothing
		}
		qualifier := byte('+')
		if spfResults[term[0]] != "" {
			qualifier, term = term[0], term[1:]
		}
		match, err := s.matches(ctx, strings.ToLower(term), domain)
		if err != nil {
			return "", err
		}
		if match {
			return spfResults[qualifier], nil
		}
	}
	if redirect == "" {
		return "neutral", nil
	}
	result, err := s.other(ctx, redirect)
	if result == "none" {
		return "", spfError(redirect + ", to which it leads, has none")
	}
	return result, err
}

// other evaluates the record of another domain.
func (s *spf) other(ctx context.Context, domain string) (string, error) {
	if strings.Contains(domain, "%") {
		s.macros = true
		return "neutral", nil
	}
	if err := s.count(); err != nil {
		return "", err
	}
	if domain == "" {
		return "", spfError("an include or redirect names no domain")
	}
	return s.check(ctx, domain)
}

func (s *spf) count() error {
	if s.lookups++; s.lookups > mostSPFLookups {
		return spfError("it needs more than 10 look-ups (RFC 7208 section 4.6.4)")
	}
	return nil
}

// matches evaluates one mechanism.
func (s *spf) matches(ctx context.Context, term, domain string) (bool, error) {
	name, rest := term, ""
	if end := strings.IndexAny(term, ":/"); end >= 0 {
		name, rest = term[:end], term[end:]
	}
	argument, given := strings.CutPrefix(rest, ":")
	if strings.Contains(argument, "%") {
		s.macros = true
		return false, s.count()
	}
	switch name {
	case "all":
		return true, nil
	case "ip4", "ip6":
		return s.within(argument)
	case "include":
		result, err := s.other(ctx, argument)
		if result == "none" {
			return false, spfError(argument + ", which it includes, has none")
		}
		return result == "pass", err
	case "ptr":
		return false, s.count() // not to be used (RFC 7208 section 5.5)
	case "exists", "a", "mx":
	default:
		return false, spfError("unknown mechanism " + strconv.Quote(name))
	}
	if !given {
		argument = domain + rest
	}
	host, four, six, err := spfHost(argument)
	if err != nil {
		return false, err
	}
	if err := s.count(); err != nil {
		return false, err
	}
	return s.hosts(ctx, name, host, four, six)
}

// within reports whether the address is in a network.
func (s *spf) within(network string) (bool, error) {
	if !strings.Contains(network, "/") {
		address, err := netip.ParseAddr(network)
		if err != nil {
			return false, spfError(strconv.Quote(network) + " isn't an address")
		}
		return address == s.address, nil
	}
	prefix, err := netip.ParsePrefix(network)
	if err != nil {
		return false, spfError(strconv.Quote(network) + " isn't a network")
	}
	return prefix.Contains(s.address), nil
}

// spfHost splits a host from the lengths of its networks, such as mx.example.com/24//64.
func spfHost(text string) (host string, four, six int, err error) {
	host, lengths, given := strings.Cut(text, "/")
	four, six = 32, 128
	if !given {
		return host, four, six, nil
	}
	first, second, both := strings.Cut(lengths, "/")
	if both {
		second = strings.TrimPrefix(second, "/")
	}
	for text, to := range map[string]*int{first: &four, second: &six} {
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > *to {
			return "", 0, 0, spfError(strconv.Quote(lengths) + " isn't the length of a network")
		}
		*to = n
	}
	return host, four, six, nil
}

// hosts reports whether the address is one of a host, or of the hosts of a domain's MX records.
func (s *spf) hosts(ctx context.Context, mechanism, host string, four, six int) (bool, error) {
	names := []string{host}
	if mechanism == "mx" {
		records, err := s.r.LookupMX(ctx, host+".")
		if err := UnlessMissing(err); err != nil {
			return false, err
		}
		names = nil
		for _, mx := range records[:min(len(records), mostSPFLookups)] {
			names = append(names, strings.TrimSuffix(mx.Host, "."))
		}
	}
	bits := four
	if s.address.Is6() {
		bits = six
	}
	for _, name := range names {
		all, err := s.r.LookupNetIP(ctx, "ip", name+".")
		if err := UnlessMissing(err); err != nil {
			return false, err
		}
		if mechanism == "exists" {
			return len(all) > 0, nil
		}
		for _, one := range all {
			one = one.Unmap()
			if network, err := one.Prefix(min(bits, one.BitLen())); err == nil && network.Contains(s.address) {
				return true, nil
			}
		}
	}
	return false, nil
}

// ReverseName returns the name that has the PTR record of an address, such as 1.2.0.192.in-addr.arpa.
func ReverseName(address netip.Addr) string {
	name, _ := dns.ReverseAddr(address.Unmap().WithZone("").String()) // an address always has one
	return strings.TrimSuffix(name, ".")
}

// Reverse checks that an address has a PTR record, that its name leads back to the address, and that email
// from the address greets with this name. Large receivers refuse mail from other addresses.
func Reverse(ctx context.Context, r HostResolver, address netip.Addr, name string) (Finding, error) {
	address = address.Unmap()
	advice := fmt.Sprintf("ask the owner of the address for a PTR record with %s, and give %s an A or AAAA record "+
		"with %s", name, name, address)
	found, err := r.LookupAddr(ctx, address.String())
	if err := UnlessMissing(err); err != nil {
		return Finding{}, err
	}
	for i := range found {
		found[i] = strings.TrimSuffix(strings.ToLower(found[i]), ".")
	}
	if len(found) == 0 {
		return Finding{Fail, nil, address.String() + " has no PTR record", advice}, nil
	}
	if !slices.Contains(found, strings.ToLower(strings.TrimSuffix(name, "."))) {
		return Finding{Warn, found, fmt.Sprintf("%s is named %s, but greets as %s", address, found[0], name),
			advice}, nil
	}
	all, err := r.LookupNetIP(ctx, "ip", name+".")
	if err := UnlessMissing(err); err != nil {
		return Finding{}, err
	}
	if !slices.ContainsFunc(all, func(a netip.Addr) bool { return a.Unmap() == address }) {
		return Finding{Fail, found, fmt.Sprintf("%s is named %s, which doesn't lead back to it", address, name),
			advice}, nil
	}
	return Finding{OK, found, fmt.Sprintf("%s is named %s, and back", address, name), ""}, nil
}
