package access

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

func validate(req api.TokenRequest, now time.Time) error {
	var wrong fault.Fields
	switch {
	case strings.TrimSpace(req.Description) == "":
		wrong.Add("description", "must not be empty")
	case utf8.RuneCountInString(req.Description) > 1024:
		wrong.Add("description", "must not be longer than 1024 characters")
	case !utf8.ValidString(req.Description) || strings.ContainsFunc(req.Description, unicode.IsControl):
		wrong.Add("description", "must not contain control characters")
	}
	blank := func(r rune) bool { return r <= ' ' || r == 0x7f }
	if len(req.Account) > 256 || strings.ContainsFunc(req.Account, blank) {
		wrong.Add("account", "must be an account ID")
	}
	for i, s := range req.Scopes {
		switch {
		case !slices.Contains(scopes, s):
			wrong.Add(fmt.Sprintf("scopes[%d]", i),
				"must be one of api, send, smtp, outbox, lists, campaigns, metrics, admin, *")
		case req.Account != "" && !slices.Contains(boundScopes, s):
			wrong.Add(fmt.Sprintf("scopes[%d]", i),
				"a token bound to an account can only have the scopes api, send, smtp, outbox, lists and campaigns")
		}
	}
	if req.Expires != nil && !req.Expires.After(now) {
		wrong.Add("expires", "must be in the future")
	}
	if r := req.Restrictions; r != nil {
		wrong = append(wrong, wrongRestrictions(*r)...)
	}
	return fault.InvalidFields(wrong)
}

func wrongRestrictions(r api.Restrictions) (wrong fault.Fields) {
	if len(r.Addresses) > 100 {
		wrong.Add("restrictions.addresses", "must not be more than 100")
	}
	for i, s := range r.Addresses {
		if _, err := parsePrefix(s); err != nil {
			key := fmt.Sprintf("restrictions.addresses[%d]", i)
			wrong.Add(key, "must be an IP address or a range such as 10.0.0.0/8")
		}
	}
	if l := r.RateLimit; l != nil {
		if l.MaxRequests < 1 || l.MaxRequests > 1_000_000 {
			wrong.Add("restrictions.rateLimit.maxRequests", "must be 1 to 1000000")
		}
		if l.TimeWindow < 1 || l.TimeWindow > 86400 {
			wrong.Add("restrictions.rateLimit.timeWindow", "must be 1 to 86400 seconds")
		}
	}
	if q := r.Quota; q != nil {
		for key, n := range map[string]int{"messages": q.Messages, "bytes": q.Bytes, "perDay": q.PerDay} {
			if n < 0 {
				wrong.Add("restrictions.quota."+key, "must be 0 or more")
			}
		}
	}
	return wrong
}

// parsePrefix parses a range in CIDR notation or a single address. It parses an IPv4 address in IPv6 form
// (::ffff:10.0.0.1) as IPv4, because remote addresses are compared in that form.
func parsePrefix(s string) (netip.Prefix, error) {
	if p, err := netip.ParsePrefix(s); err == nil {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96).Masked(), nil
		}
		return p.Masked(), nil
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("access: %q is neither an address nor a range", s)
	}
	addr = addr.Unmap()
	return netip.PrefixFrom(addr, addr.BitLen()), nil
}

// unique returns the scopes without repetitions, in order.
func unique(in []api.Scope) []api.Scope {
	var out []api.Scope
	for _, s := range in {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
