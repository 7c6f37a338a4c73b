package mxsend

import (
	"context"
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// receivers are the domains of large receivers' mail servers, where each customer has hosts with
// another name. The first that fits is the group.
var receivers = []struct{ suffix, group string }{
	{"olc.protection.outlook.com", "olc.protection.outlook.com"}, // outlook.com, hotmail.com, live.com, msn.com
	{"protection.outlook.com", "protection.outlook.com"},         // Microsoft 365
	{"mx.microsoft", "protection.outlook.com"},                   // the same, with DNSSEC
	{"google.com", google},
	{"googlemail.com", google},
	{"yahoodns.net", "yahoodns.net"}, // Yahoo and AOL
}

// google is the group of Google's servers, which want one domain in a transaction (450 4.3.0 Multiple
// destination domains per transaction is unsupported).
const google = "google.com"

// Group returns the group that a domain shares limits with: the name that its mail servers have in common,
// such as protection.outlook.com or example.net. A domain without servers is its own group. An error means
// that the DNS didn't answer; then, too, the group is the domain.
func (s *Sender) Group(ctx context.Context, domain string) (string, error) {
	domain = canonicalDomain(domain)
	if _, ok := literal(domain); ok {
		return domain, nil
	}
	d, failure := s.exchanges(ctx, domain)
	switch {
	case failure == nil:
		return groupOf(d), nil
	case failure.Code == 0 && failure.RetryAfter == 0:
		return domain, failure
	}
	return domain, nil
}

// mostNamed is how many hosts name a group that has nothing in common.
const mostNamed = 3

// groupOf returns the group of the hosts in a destination's MX records.
func groupOf(d *destination) string {
	if d.literal {
		return d.domain
	}
	var names []string
	for exchange := range strings.SplitSeq(d.exchanges, ",") {
		_, name, _ := strings.Cut(exchange, " ")
		names = append(names, receiver(name))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	common := names[0]
	for _, name := range names[1:] {
		common = commonSuffix(common, name)
	}
	// Hosts of several organisations have no more in common than a public suffix.
	if suffix, _ := publicsuffix.PublicSuffix(common); common == "" || common == suffix && len(names) > 1 {
		return strings.Join(names[:min(len(names), mostNamed)], ",")
	}
	return common
}

// receiver returns the group of a host that belongs to a large receiver, else the host's name.
func receiver(host string) string {
	for _, r := range receivers {
		if host == r.suffix || strings.HasSuffix(host, "."+r.suffix) {
			return r.group
		}
	}
	return host
}

// commonSuffix returns the labels that two names end with.
func commonSuffix(a, b string) string {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	n := 0
	for n < min(len(x), len(y)) && x[len(x)-1-n] == y[len(y)-1-n] {
		n++
	}
	return strings.Join(x[len(x)-n:], ".")
}

// batch is recipients that share transactions: their domains have the same servers and the same policy.
type batch struct {
	*destination
	group   string
	domains []string
	open    []int // recipients without a final answer, as indexes into Message.To
}

// mostLookups is how many domains of a message are looked up at the same time.
const mostLookups = 16

// batches looks up the domains of the recipients, and joins those with the same servers. Recipients of
// domains without servers fail.
func (d *delivery) batches(ctx context.Context) []*batch {
	var domains []string
	to := map[string][]int{}
	for i, address := range d.m.To {
		domain := domainOf(address)
		if to[domain] == nil {
			domains = append(domains, domain)
		}
		to[domain] = append(to[domain], i)
	}
	found := make([]*destination, len(domains))
	failures := make([]*smtpsend.Error, len(domains))
	own := identify(d.sources)
	var all sync.WaitGroup
	slots := make(chan struct{}, mostLookups)
	for i, domain := range domains {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			found[i], failures[i] = d.s.resolve(ctx, domain, own)
		})
	}
	all.Wait()
	var out []*batch
	byKey := map[string]*batch{}
	for i, domain := range domains {
		if failures[i] != nil {
			d.fail(to[domain], failures[i])
			continue
		}
		key := batchKey(found[i])
		b := byKey[key]
		if b == nil {
			b = &batch{destination: found[i], group: groupOf(found[i])}
			byKey[key] = b
			out = append(out, b)
		}
		b.domains = append(b.domains, domain)
		b.open = append(b.open, to[domain]...)
	}
	return out
}

// batchKey is the same for destinations whose recipients may share a transaction.
func batchKey(d *destination) string {
	key := d.exchanges + " " + d.policy.Mode + " " + strings.Join(d.policy.MX, ",")
	if d.authentic {
		key += " authentic"
	}
	if groupOf(d) == google {
		key += " " + d.domain
	}
	return key
}

// domainOf returns an address' domain as the DNS has it.
func domainOf(address string) string {
	return canonicalDomain(address[strings.LastIndexByte(address, '@')+1:])
}

func canonicalDomain(domain string) string {
	return strings.TrimSuffix(strings.ToLower(message.ASCIIDomain(domain)), ".")
}
