package dialing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrRefused is the cause of every error about a destination that may not be dialed.
var ErrRefused = errors.New("destination refused")

// refusal is an error about a destination. Its text does not name the address: who named a host may not know
// where it leads.
type refusal struct{ why string }

// Error returns one line.
func (r *refusal) Error() string { return ErrRefused.Error() + ": " + r.why }

// Is makes a refusal ErrRefused.
func (r *refusal) Is(target error) bool { return target == ErrRefused }

// never lists the prefixes that are always refused: link-local addresses, and the addresses where clouds
// serve credentials.
var never = []netip.Prefix{
	// link-local (RFC 3927); AWS, Google, Azure, Oracle, DigitalOcean metadata
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),          // link-local (RFC 4291)
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS metadata and time over IPv6
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google metadata over IPv6
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba metadata
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle metadata, older
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure host agent: a public address that is not public
}

// unusable lists prefixes that are refused even if private addresses are permitted: no server is there, or
// the address hides another.
var unusable = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),      // this network, which Linux treats as this machine
	netip.MustParsePrefix("224.0.0.0/3"),    // multicast, reserved, broadcast
	netip.MustParsePrefix("::/96"),          // unspecified, IPv4-compatible; loopback is permitted before
	netip.MustParsePrefix("ff00::/8"),       // multicast
	netip.MustParsePrefix("2001::/32"),      // Teredo (RFC 4380)
	netip.MustParsePrefix("2002::/16"),      // 6to4 (RFC 3056)
	netip.MustParsePrefix("64:ff9b:1::/48"), // NAT64 within a network (RFC 8215)
}

// Options are the settings of a Guard. The zero value permits public addresses only.
type Options struct {
	AllowPrivate bool          // private and loopback addresses may be dialed
	Setting      string        // name of the setting behind AllowPrivate, for errors; empty if there is none
	Resolver     *net.Resolver // defaults to the machine's
	// Logger gets, at debug, what errors hide; nil to discard
	Logger *slog.Logger
}

// Guard judges destinations. It is safe for concurrent use.
type Guard struct {
	o      Options
	public *ssrf.Guardian
}

// New returns a Guard.
func New(o Options) *Guard {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Resolver = cmp.Or(o.Resolver, net.DefaultResolver)
	return &Guard{o: o, public: ssrf.New(ssrf.WithAnyPort())} // operators run servers on odd ports
}

// WithPrivate returns a Guard that also permits private addresses, for what only the operator can name.
func (g *Guard) WithPrivate() *Guard {
	if g.o.AllowPrivate {
		return g
	}
	o := g.o
	o.AllowPrivate = true
	return New(o)
}

// Dialer returns a dialer that checks every address before it connects. The caller may set its timeout and
// its local address.
func (g *Guard) Dialer() *net.Dialer {
	return &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Resolver: g.o.Resolver,
		Control: g.control}
}

// control is the Control of a net.Dialer. It runs with the address that is about to be dialed.
func (g *Guard) control(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %s isn't an address", ErrRefused, network, address)
	}
	err = g.check(target.Addr())
	if err != nil {
		g.o.Logger.Debug("address not dialed", "address", address, "reason", err)
	}
	return err
}

// check refuses an address that may not be dialed.
func (g *Guard) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("") // ::ffff:127.0.0.1 is 127.0.0.1, and no prefix contains an address with a zone
	if ssrf.IPv6NAT64Prefix.Contains(ip) {
		whole := ip.As16()
		ip = netip.AddrFrom4([4]byte(whole[12:])) // RFC 6052 section 2.2
	}
	switch {
	case within(ip, never):
		return &refusal{"link-local and metadata addresses are never dialed"}
	case g.o.AllowPrivate && (ip.IsLoopback() || !within(ip, unusable)):
		return nil
	case g.o.AllowPrivate:
		return &refusal{"no server can have this address"}
	case g.public.SafeAddr(ip) == nil:
		return nil
	case g.o.Setting == "":
		return &refusal{"the address is not a public one"}
	}
	return &refusal{"the address is not a public one, and " + g.o.Setting + " is off"}
}

// within reports whether an address is in one of some prefixes.
func within(ip netip.Addr, prefixes []netip.Prefix) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// CheckHost refuses a host that is an address which may not be dialed, or this machine by its usual name.
// Other names are judged when they are dialed.
func (g *Guard) CheckHost(host string) error {
	if ip, ok := literal(host); ok {
		return g.check(ip)
	}
	return nil
}

// literal returns the address that a host is without DNS.
func literal(host string) (netip.Addr, bool) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761 section 6.3
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return ip, err == nil
}

// Target returns what a proxy is asked to connect to for a host. The proxy resolves names, and may get
// another address than Postroom. So where private addresses are refused, a name is resolved here, and the
// proxy gets the address that was judged. Elsewhere it gets the name: it may know names that Postroom's DNS
// does not.
func (g *Guard) Target(ctx context.Context, host string) (string, error) {
	if _, ok := literal(host); ok || g.o.AllowPrivate {
		return host, g.CheckHost(host)
	}
	all, err := g.o.Resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return "", Plain(err)
	}
	// every proxy has IPv4, not every one IPv6
	slices.SortStableFunc(all, func(a, b netip.Addr) int { return a.Unmap().BitLen() - b.Unmap().BitLen() })
	for _, ip := range all {
		if err = g.check(ip); err == nil {
			return ip.Unmap().String(), nil
		}
	}
	g.o.Logger.Debug("host not dialed", "host", host, "addresses", all, "reason", err)
	return "", err
}

// Plain returns a connection error without its details about the network: the address that was refused, and
// the name server that was asked.
func Plain(err error) error {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		plain := *dns
		plain.Server = ""
		return &plain
	}
	return err
}
