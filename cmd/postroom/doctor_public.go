package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
)

// public checks the address of links and the domain of return paths, as far as they are set.
func (x *exam) public(ctx context.Context) []finding {
	const name = "public"
	var found []finding
	switch url := x.cfg.ServiceURL; {
	case strings.HasPrefix(url, "https://"):
		found = append(found, finding{name, ok, "links of mail lead to " + url, ""})
	case url != "":
		found = append(found, finding{name, warn, "links of mail lead to " + url + ", which is not encrypted",
			"mail programs offer their unsubscribe button for https only (RFC 8058): set serviceUrl to an https address"})
	}
	domain := x.cfg.Bounce.Domain
	if domain == "" {
		return found
	}
	records, err := x.resolver.LookupMX(ctx, domain+".")
	var dns *net.DNSError
	switch {
	case err == nil && len(records) > 0:
		return append(found, finding{name, ok, fmt.Sprintf("mail that comes back to %s goes to %s", domain,
			strings.TrimSuffix(records[0].Host, ".")), ""})
	case err == nil, errors.As(err, &dns) && dns.IsNotFound:
		return append(found, finding{name, fail, "mail that comes back to " + domain +
			" goes nowhere: it has no MX record",
			"point an MX record at the machine that takes it (docs/bounces.md), or clear bounce.domain"})
	}
	return append(found, finding{
		name, warn, fmt.Sprintf("it is not known where mail that comes back to %s goes: %v", domain, err), ""})
}
