// Package maildns looks up what domains publish about their mail, and reads the tags of it. It sends no
// mail.
//
// A [Client] asks the machine's name servers itself, because Go's resolver doesn't say whether DNSSEC
// proves an answer. It is the only part that keeps anything: answers, in memory, for five minutes at most.
// It doesn't validate signatures; it believes the AD bit of a name server on this machine, or of one that
// the operator trusts.
package maildns

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Resolver looks up the DNS. *net.Resolver implements it.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupNS(ctx context.Context, name string) ([]*net.NS, error)
}

// Answers returns an error if the DNS of the internet can't be asked. The servers of closed networks answer
// for every name that it does not exist, also for com.
func Answers(ctx context.Context, r Resolver) error {
	_, err := r.LookupNS(ctx, "com.")
	return err
}

// TXT returns the TXT records of a name that begin with a version, such as v=spf1, or all if it is empty. If
// there are none, that isn't an error.
func TXT(ctx context.Context, r Resolver, name, version string) ([]string, error) {
	all, err := r.LookupTXT(ctx, name+".")
	return slices.DeleteFunc(all, func(record string) bool {
		head, _, _ := strings.Cut(strings.ReplaceAll(record, ";", " "), " ")
		return version != "" && !strings.EqualFold(strings.TrimSpace(head), version)
	}), UnlessMissing(err)
}

// DMARC returns the DMARC records of a domain, or of its organizational domain (RFC 7489 section 6.6.3),
// and the name that has them. More than one counts as none.
func DMARC(ctx context.Context, r Resolver, domain string) (name string, records []string, err error) {
	names := []string{domain}
	if whole, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil && whole != domain {
		names = append(names, whole)
	}
	for _, one := range names {
		name = "_dmarc." + one
		if records, err = TXT(ctx, r, name, "v=DMARC1"); err != nil || len(records) > 0 {
			return name, records, err
		}
	}
	return "_dmarc." + domain, nil, nil
}

// Tags returns the tags of a record or of a signature, and the name of the first (RFC 6376 section 3.2, RFC
// 7489 section 6.4). White space around names and values is left out.
func Tags(list string) (tags map[string]string, first string, err error) {
	tags = map[string]string{}
	for part := range strings.SplitSeq(list, ";") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		name = strings.TrimSpace(name)
		if _, again := tags[name]; !ok || name == "" || again {
			return nil, "", errors.New("is not a list of name=value; without any name twice")
		}
		tags[name] = strings.TrimSpace(value)
		first = cmp.Or(first, name)
	}
	return tags, first, nil
}

// UnlessMissing returns err, unless it means that there is no such record.
func UnlessMissing(err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return nil
	}
	return err
}
