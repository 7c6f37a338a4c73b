package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/internal/maildns"
)

// resolver looks up the DNS.
type resolver = maildns.MailResolver

// maxDomains bounds the DNS checks of an instance with many accounts.
const maxDomains = 20

// dns checks what receivers check: whether the sender domains take mail, who may send for them, and what to
// do with forgeries.
func (x *exam) dns(ctx context.Context) []finding {
	domains := slices.Sorted(maps.Keys(x.domains))
	if len(domains) == 0 {
		return nil
	}
	unasked := func(err error) finding {
		return finding{"dns", warn,
			fmt.Sprintf("not checked, because the DNS of the internet can't be asked from here: %v", err),
			"run this where it can; receivers look at MX, SPF, DKIM and DMARC of " + strings.Join(domains, ", ")}
	}
	if err := maildns.Answers(ctx, x.resolver); err != nil {
		return []finding{unasked(err)}
	}
	var found []finding
	for i, domain := range domains {
		if i == maxDomains {
			return append(found, finding{"dns", warn, fmt.Sprintf("%d more domains were not checked", len(domains)-i),
				"name them: --domain"})
		}
		more, err := x.domain(ctx, domain)
		if err != nil {
			return append(found, unasked(err))
		}
		found = append(found, more...)
	}
	return found
}

// domain checks one domain. An error means that the DNS did not answer, not that the domain is wrong.
func (x *exam) domain(ctx context.Context, domain string) ([]finding, error) {
	ascii, err := idna.Lookup.ToASCII(domain)
	if err != nil {
		return []finding{{"dns", fail, domain + " is not a domain name", "correct the sender's address"}}, nil
	}
	var found []finding
	for _, look := range []func(context.Context, string) (finding, error){x.mx, x.spf, x.dkim, x.dmarc} {
		f, err := look(ctx, ascii)
		if err != nil {
			return nil, err
		}
		if f.Status != "" {
			found = append(found, f)
		}
	}
	return found, nil
}

// mx, spf, dkim and dmarc are the checks of package maildns, as findings of this command.
func (x *exam) mx(ctx context.Context, domain string) (finding, error) {
	f, err := maildns.MX(ctx, x.resolver, domain)
	return findingOf("mx", f), err
}

func (x *exam) spf(ctx context.Context, domain string) (finding, error) {
	f, err := maildns.SPF(ctx, x.resolver, domain)
	return findingOf("spf", f), err
}

// dkim checks nothing without a selector, because selectors cannot be listed.
func (x *exam) dkim(ctx context.Context, domain string) (finding, error) {
	if x.selector == "" {
		return finding{}, nil
	}
	f, err := maildns.DKIM(ctx, x.resolver, x.selector+"._domainkey."+domain)
	return findingOf("dkim", f), err
}

func (x *exam) dmarc(ctx context.Context, domain string) (finding, error) {
	f, err := maildns.Policy(ctx, x.resolver, domain)
	return findingOf("dmarc", f), err
}

func findingOf(check string, f maildns.Finding) finding {
	return finding{check, f.Status, f.Message, f.Advice}
}
