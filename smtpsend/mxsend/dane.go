package mxsend

import (
	"context"
	"fmt"
	"strings"

	"github.com/miekg/dns"

	"github.com/postroom/postroom/smtpsend"
)

// tlsa is the requirement of a host's TLSA records. The zero value requires nothing.
type tlsa struct {
	records   string // usable ones, as [smtpsend.Relay.TLSA]; empty if none
	base      string // the name that has them
	authority bool   // one names an authority, so the server's name must be right
	unusable  bool   // there are records, but none can be used: TLS without verification
}

// tlsa looks up the TLSA records of a host (RFC 7672 section 2.2). They count only if DNSSEC proves the way
// to them. An error means that the host must not be used now: an attacker may have suppressed the answer.
func (s *Sender) tlsa(ctx context.Context, h *host) (tlsa, error) {
	if !h.authentic {
		return tlsa{}, nil
	}
	for _, base := range []string{h.canonical, h.name} {
		answer, err := s.o.Resolver.Ask(ctx, fmt.Sprintf("_%d._tcp.%s", s.o.Port, base), dns.TypeTLSA)
		if err != nil {
			return tlsa{}, err
		}
		if answer.Authentic && len(answer.Records) > 0 {
			return readTLSA(base, answer.Records), nil
		}
		if h.name == h.canonical {
			break
		}
	}
	return tlsa{}, nil
}

// readTLSA returns the records that mail servers may use: usages 2 and 3 (RFC 7672 section 3.1). For each
// usage and selector, SHA-512 replaces SHA-256 (digest agility, RFC 7671 section 9).
func readTLSA(base string, records []dns.RR) tlsa {
	usable := map[string]*dns.TLSA{}
	var order []string
	for _, record := range records {
		t, ok := record.(*dns.TLSA)
		if !ok {
			continue
		}
		text := fmt.Sprintf("%d %d %d %s", t.Usage, t.Selector, t.MatchingType, t.Certificate)
		if smtpsend.CheckTLSA(text) == nil {
			usable[text] = t
			order = append(order, text)
		}
	}
	out := tlsa{base: base}
	var texts []string
	for _, text := range order {
		t := usable[text]
		weaker := false
		for _, other := range usable {
			weaker = weaker || t.MatchingType == 1 && other.MatchingType == 2 && other.Usage == t.Usage &&
				other.Selector == t.Selector
		}
		if !weaker {
			texts = append(texts, text)
			out.authority = out.authority || t.Usage == 2
		}
	}
	out.records, out.unusable = strings.Join(texts, ","), len(texts) == 0
	return out
}
