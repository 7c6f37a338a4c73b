package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/maildns"
)

// resolver looks up the DNS. *net.Resolver implements it.
type resolver interface {
	maildns.Resolver
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
}

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

// mx checks that bounces and replies can come back (RFC 5321 section 5.1, RFC 7505).
func (x *exam) mx(ctx context.Context, domain string) (finding, error) {
	records, err := x.resolver.LookupMX(ctx, domain+".")
	if err := maildns.UnlessMissing(err); err != nil {
		return finding{}, err
	}
	switch {
	case len(records) == 0:
		return finding{"mx", warn,
			domain + " has no MX record: bounces and answers may not come back, and some receivers refuse such senders", "add an MX record"}, nil
	case len(records) == 1 && (records[0].Host == "." || records[0].Host == ""):
		return finding{"mx", fail,
			domain + " says that it takes no mail (null MX, RFC 7505): many receivers refuse mail from it",
			"remove the null MX, or send from another domain"}, nil
	}
	return finding{"mx", ok, domain + " takes mail at " + strings.TrimSuffix(records[0].Host, "."), ""}, nil
}

// spf checks who may send for the domain (RFC 7208). Only the relay's operator knows whether that includes
// the relay.
func (x *exam) spf(ctx context.Context, domain string) (finding, error) {
	records, err := maildns.TXT(ctx, x.resolver, domain, "v=spf1")
	if err != nil {
		return finding{}, err
	}
	switch {
	case len(records) == 0:
		return finding{"spf", warn, domain + " has no SPF record",
			"add the TXT record your relay's provider gives you, such as: v=spf1 include:… ~all"}, nil
	case len(records) > 1:
		return finding{"spf", fail,
			fmt.Sprintf("%s has %d SPF records, which counts as an error (RFC 7208 section 4.5)", domain,
				len(records)), "join them into one"}, nil
	case slices.ContainsFunc(strings.Fields(records[0]), isAll):
		return finding{"spf", warn, domain + " lets everybody send for it: " + records[0],
			"end the record with ~all or -all"}, nil
	}
	return finding{"spf", ok, domain + ": " + records[0], ""}, nil
}

func isAll(term string) bool { return term == "+all" || term == "all" }

// dkim checks the key of a selector (RFC 6376 section 3.6.1). Without a selector it checks nothing, because
// selectors cannot be listed.
func (x *exam) dkim(ctx context.Context, domain string) (finding, error) {
	if x.selector == "" {
		return finding{}, nil
	}
	name := x.selector + "._domainkey." + domain
	records, err := maildns.TXT(ctx, x.resolver, name, "")
	if err != nil {
		return finding{}, err
	}
	for _, record := range records {
		tags, _, err := maildns.Tags(record)
		if err != nil {
			continue // verifiers ignore it
		}
		key, isKey := tags["p"]
		if isKey && key == "" {
			return finding{"dkim", fail, name + " is revoked: its key is empty",
				"publish the key, or sign with another selector"}, nil
		}
		if isKey {
			return finding{"dkim", ok, name + " has a key", ""}, nil
		}
	}
	return finding{"dkim", fail, name + " has no key", "publish the TXT record your relay's provider gives you"},
		nil
}

// dmarc checks what receivers shall do with forgeries (RFC 7489).
func (x *exam) dmarc(ctx context.Context, domain string) (finding, error) {
	name, records, err := maildns.DMARC(ctx, x.resolver, domain)
	switch {
	case err != nil:
		return finding{}, err
	case len(records) > 1:
		return finding{"dmarc", fail,
			name + " has several records, and so counts as having none (RFC 7489 section 6.6.3)", "leave one"}, nil
	case len(records) == 1:
		return finding{"dmarc", ok, domain + ": " + records[0], ""}, nil
	}
	return finding{"dmarc", warn,
		domain + " has no DMARC record: large receivers want one of everyone who sends much",
		"add a TXT record at " + name + ", to begin with: v=DMARC1; p=none"}, nil
}
