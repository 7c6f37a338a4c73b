package maildns

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
)

// MailResolver looks up the DNS for mail. *net.Resolver implements it.
type MailResolver interface {
	Resolver
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
}

// The statuses of a [Finding].
const (
	OK   = "ok"
	Warn = "warn" // mail is sent, but receivers may trust it less
	Fail = "fail" // receivers refuse mail, or verify nothing
)

// Finding is the result of a look at what a domain publishes.
type Finding struct {
	Status  string   // OK, Warn or Fail
	Found   []string // the records as they are
	Message string   // the finding, as text
	Advice  string   // what to do; empty for nothing
}

// MX checks that bounces and replies can come back to a domain (RFC 5321 section 5.1, RFC 7505). An error
// means that the DNS did not answer, not that the domain is wrong; so it does for the others below.
func MX(ctx context.Context, r MailResolver, domain string) (Finding, error) {
	records, err := r.LookupMX(ctx, domain+".")
	if err := UnlessMissing(err); err != nil {
		return Finding{}, err
	}
	var found []string
	for _, mx := range records {
		found = append(found, fmt.Sprintf("%d %s", mx.Pref, strings.TrimSuffix(mx.Host, ".")))
	}
	switch {
	case len(records) == 0:
		return Finding{Warn, nil, domain + " has no MX record: bounces and answers may not come back, and some " +
			"receivers refuse such senders", "add an MX record"}, nil
	case len(records) == 1 && (records[0].Host == "." || records[0].Host == ""):
		return Finding{Fail, found, domain + " says that it takes no mail (null MX, RFC 7505): many receivers " +
			"refuse mail from it", "remove the null MX, or send from another domain"}, nil
	}
	return Finding{OK, found, domain + " takes mail at " + strings.TrimSuffix(records[0].Host, "."), ""}, nil
}

// SPF checks who may send for a domain (RFC 7208). Only the operator of a relay knows whether that includes
// the relay.
func SPF(ctx context.Context, r Resolver, domain string) (Finding, error) {
	records, err := TXT(ctx, r, domain, "v=spf1")
	if err != nil {
		return Finding{}, err
	}
	isAll := func(term string) bool { return term == "+all" || term == "all" }
	switch {
	case len(records) == 0:
		return Finding{Warn, nil, domain + " has no SPF record",
			"add the TXT record your relay's provider gives you, such as: v=spf1 include:… ~all"}, nil
	case len(records) > 1:
		return Finding{Fail, records, fmt.Sprintf("%s has %d SPF records, which counts as an error (RFC 7208 "+
			"section 4.5)", domain, len(records)), "join them into one"}, nil
	case slices.ContainsFunc(strings.Fields(records[0]), isAll):
		return Finding{Warn, records, domain + " lets everybody send for it: " + records[0],
			"end the record with ~all or -all"}, nil
	}
	return Finding{OK, records, domain + ": " + records[0], ""}, nil
}

// DKIM checks the key at a name such as s1._domainkey.example.com (RFC 6376 section 3.6.1).
func DKIM(ctx context.Context, r Resolver, name string) (Finding, error) {
	records, err := TXT(ctx, r, name, "")
	if err != nil {
		return Finding{}, err
	}
	for _, record := range records {
		tags, _, err := Tags(record)
		if err != nil {
			continue // verifiers ignore it
		}
		key, isKey := tags["p"]
		if isKey && key == "" {
			return Finding{Fail, records, name + " is revoked: its key is empty",
				"publish the key, or sign with another selector"}, nil
		}
		if isKey {
			return Finding{OK, records, name + " has a key", ""}, nil
		}
	}
	return Finding{Fail, records, name + " has no key",
		"publish the TXT record your relay's provider gives you"}, nil
}

// Policy checks what receivers shall do with forgeries of a domain: its DMARC record (RFC 7489).
func Policy(ctx context.Context, r Resolver, domain string) (Finding, error) {
	name, records, err := DMARC(ctx, r, domain)
	switch {
	case err != nil:
		return Finding{}, err
	case len(records) > 1:
		return Finding{Fail, records,
			name + " has several records, and so counts as having none (RFC 7489 section 6.6.3)", "leave one"}, nil
	case len(records) == 1:
		return Finding{OK, records, domain + ": " + records[0], ""}, nil
	}
	return Finding{Warn, nil,
		domain + " has no DMARC record: large receivers want one of everyone who sends much",
		"add a TXT record at " + name + ", for a start: v=DMARC1; p=none"}, nil
}
