package webhooks

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"syscall"

	"code.dny.dev/ssrf"
)

// errRefused marks a destination that webhooks may not be sent to. A retry does not help.
var errRefused = errors.New("destination refused")

// metadata lists the prefixes that are always refused: link-local addresses, and the addresses where clouds
// serve credentials.
var metadata = []netip.Prefix{
	// link-local (RFC 3927); AWS, Google, Azure, Oracle, DigitalOcean metadata
	netip.MustParsePrefix("169.254.0.0/16"),
	netip.MustParsePrefix("fe80::/10"),          // link-local (RFC 4291)
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS metadata and time over IPv6
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google metadata over IPv6
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba metadata
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle metadata, older
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure host agent: a public address that is not public
}

// private lists the prefixes that allowPrivate permits.
var (
	private4 = []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("172.16.0.0/12"),
		netip.MustParsePrefix("192.168.0.0/16"),
		netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
	}
	private6 = []netip.Prefix{netip.MustParsePrefix("fc00::/7"), netip.MustParsePrefix("::1/128")}
)

// destinations decides which addresses may be dialed. It checks the resolved address of each connection,
// after DNS. A name that resolves differently between a check and a connection (DNS rebinding) is therefore
// refused too.
type destinations struct{ guard *ssrf.Guardian }

func newDestinations(allowPrivate bool) destinations {
	options := []ssrf.Option{ssrf.WithAnyPort()} // operators run receivers on odd ports
	if allowPrivate {
		options = append(options, ssrf.WithAllowedV4Prefixes(private4...), ssrf.WithAllowedV6Prefixes(private6...))
	}
	return destinations{guard: ssrf.New(options...)}
}

// control is a net.Dialer's Control. It runs with the address that is about to be dialed.
func (d destinations) control(network, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %s %s is no address", errRefused, network, address)
	}
	return d.check(target.Addr())
}

// check refuses an address that webhooks may not reach.
func (d destinations) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("") // ::ffff:127.0.0.1 is 127.0.0.1, and no prefix contains an address with a zone
	for _, p := range metadata {
		if p.Contains(ip) {
			return fmt.Errorf("%w: %s is a link-local or metadata address", errRefused, ip)
		}
	}
	if err := d.guard.SafeAddr(ip); err != nil {
		return fmt.Errorf("%w: %s is not a public address (webhooks.allowPrivate opens private ones)", errRefused,
			ip)
	}
	return nil
}

// CheckURL checks the URL of an endpoint. It must be absolute, http or https, name a host and carry no user
// or password, which would appear in logs. The host's address is checked when it is dialed, not here.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with https:// or http://")
	case u.Hostname() == "":
		return errors.New("must name a host")
	case u.User != nil:
		return errors.New("must not hold a user or password; use headers")
	case u.Fragment != "":
		return errors.New("must not hold a fragment")
	}
	return nil
}
