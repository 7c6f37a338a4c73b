package provision

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/accounts/dkim"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/maildns"
)

// DNS is what accounts' records depend on.
type DNS struct {
	Resolver     maildns.HostResolver
	Keys         *dkim.Keys    // domains' keys
	BounceDomain string        // for return paths; empty if they are the senders'
	ServiceURL   func() string // its host takes returned mail
}

// checkTimeout is the timeout of all questions to the DNS for one account.
const checkTimeout = 15 * time.Second

// providerSPF are the SPF terms that providers publish for their customers, by preset. Sources: the help
// pages of each provider on SPF. A type of gateway has the same name.
var providerSPF = map[string]string{"gmail": "include:_spf.google.com",
	"office365": "include:spf.protection.outlook.com", "ses": "include:amazonses.com",
	"sendgrid": "include:sendgrid.net", "mailgun": "include:mailgun.org", "postmark": "include:spf.mtasv.net",
	"icloud": "include:icloud.com"}

// AccountDNS returns the records that an account needs. With check it asks the DNS for each. Unknown account:
// NotFound.
func (p *Provisioner) AccountDNS(ctx context.Context, id string, check bool) (api.AccountDNS, error) {
	info, err := p.Accounts.Get(ctx, id)
	if err != nil {
		return api.AccountDNS{}, err
	}
	z := &zone{DNS: p.DNS, answer: api.AccountDNS{Account: id, Records: []api.DNSRecord{}}}
	at := strings.LastIndexByte(info.Email, '@')
	if z.domain, err = idna.Lookup.ToASCII(strings.ToLower(info.Email[at+1:])); err != nil {
		return api.AccountDNS{}, fault.Wrap(err, fault.Unprocessable, "",
			"The domain of %s isn't a domain name. Correct the account's address", info.Email)
	}
	if err = p.addRelays(ctx, z, info.Account); err != nil {
		return api.AccountDNS{}, err
	}
	key, err := p.keyOf(ctx, info.Account, z.domain)
	if err != nil {
		return api.AccountDNS{}, err
	}
	senders, err := p.Accounts.Senders(ctx, id)
	if err != nil {
		return api.AccountDNS{}, err
	}
	if check {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		if err := maildns.Answers(ctx, z.Resolver); err != nil {
			z.answer.Trouble = "The DNS of the internet can't be asked from here: " + err.Error()
		} else {
			z.asks = true
			z.answer.Checked = new(time.Now().UTC().Truncate(time.Second))
		}
	}
	z.add(ctx, key, senders.Senders)
	return z.answer, nil
}

// addRelays adds the SPF terms for the relays of an account, and the addresses that it sends from itself.
func (p *Provisioner) addRelays(ctx context.Context, z *zone, a api.Account) error {
	if a.SMTP != nil {
		z.addRelay(a.SMTP.Preset, a.SMTP.Host)
	}
	for _, route := range a.Gateways {
		g, err := p.Gateways.Get(ctx, route.Gateway)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		z.addRelay(cmp.Or(g.Preset, string(g.Type)), g.Host)
		if g.MX == nil {
			continue
		}
		for _, given := range g.MX.Addresses {
			address, err := netip.ParseAddr(given.Address)
			if s := (source{address.Unmap(), given.Name}); err == nil && !slices.Contains(z.sources, s) {
				z.sources = append(z.sources, s)
			}
			z.addRelay("", given.Address)
		}
	}
	return nil
}

// addRelay adds the SPF term for a provider or a host.
func (z *zone) addRelay(provider, host string) {
	term := providerSPF[provider]
	if term == "" && host != "" {
		term = hostTerm(host)
	}
	if term != "" && !slices.Contains(z.spf, term) {
		z.spf = append(z.spf, term)
	}
}

// hostTerm returns the SPF term for the host of a relay: its name or its address (RFC 7208 section 5).
func hostTerm(host string) string {
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	switch {
	case err != nil:
		return "a:" + strings.ToLower(host)
	case addr.Unmap().Is4():
		return "ip4:" + addr.Unmap().String()
	default:
		return "ip6:" + addr.WithZone("").String()
	}
}

// publicKey is a DKIM key as it is published.
type publicKey struct{ name, record string }

// keyOf returns the key that signs the mail of an account; zero if there is none.
func (p *Provisioner) keyOf(ctx context.Context, a api.Account, domain string) (publicKey, error) {
	if a.DKIM != nil {
		sender, err := p.Accounts.Resolve(ctx, a.Account)
		if err != nil || sender.DKIM == nil {
			return publicKey{}, err
		}
		key, err := dkim.Parse(sender.DKIM.PrivateKey)
		if err != nil {
			return publicKey{}, fmt.Errorf("dkim key of account %s: %w", a.Account, err)
		}
		record, err := dkim.Record(key)
		return publicKey{dkim.RecordName(sender.DKIM.Selector, sender.DKIM.Domain), record}, err
	}
	key, err := p.DNS.Keys.Get(ctx, domain)
	switch {
	case fault.Is(err, fault.NotFound):
		return publicKey{}, nil
	case err != nil:
		return publicKey{}, err
	}
	return publicKey{dkim.RecordName(key.Selector, key.Domain), key.Record}, nil
}

// source is an address to send from, with the name that it greets with.
type source struct {
	address netip.Addr
	name    string
}

// zone collects the records of an account.
type zone struct {
	*DNS
	domain  string   // the sender's
	spf     []string // terms for its relays
	sources []source // that Postroom sends from itself
	asks    bool     // the DNS is asked
	answer  api.AccountDNS
}

func (z *zone) add(ctx context.Context, key publicKey, senders []api.SenderInfo) {
	from := cmp.Or(z.BounceDomain, z.domain) // the return path's domain, which SPF is about
	z.record(ctx, api.DNSRecord{Purpose: "spf", Name: from, Type: "TXT", Value: z.spfRecord()}, z.checkSPF)
	if key.name == "" {
		z.answer.Records = append(z.answer.Records, api.DNSRecord{Purpose: "dkim", Type: "TXT",
			Name: "SELECTOR._domainkey." + z.domain, Status: "unchecked",
			Message: "Postroom has no key for this domain, so it doesn't sign; the relay's provider may",
			Advice: "publish what the provider gives you, or: postroom dkim generate --domain " + z.domain +
				" --selector s1"})
	} else {
		z.record(ctx, api.DNSRecord{Purpose: "dkim", Name: key.name, Type: "TXT", Value: key.record}, z.checkKey)
	}
	z.record(ctx, api.DNSRecord{Purpose: "dmarc", Name: "_dmarc." + z.domain, Type: "TXT",
		Value: "v=DMARC1; p=none"},
		func(ctx context.Context, _ api.DNSRecord) (maildns.Finding, error) {
			return maildns.Policy(ctx, z.Resolver, z.domain)
		})
	z.record(ctx, api.DNSRecord{Purpose: "mx", Name: z.domain, Type: "MX"}, z.checkMX)
	if z.BounceDomain != "" && z.BounceDomain != z.domain {
		z.record(ctx, api.DNSRecord{Purpose: "returnPath", Name: z.BounceDomain, Type: "MX", Value: z.mailHost()},
			z.checkMX)
	}
	for _, s := range z.sources {
		z.addSource(ctx, s)
	}
	for _, s := range senders {
		if s.DNS != nil {
			z.record(ctx, api.DNSRecord{Purpose: "sender", Name: s.DNS.Name, Type: "TXT", Value: s.DNS.Value},
				z.checkText)
		}
	}
}

// addSource adds the PTR record of an address to send from. Its name must lead back to the address.
func (z *zone) addSource(ctx context.Context, s source) {
	z.record(ctx, api.DNSRecord{Purpose: "source", Name: maildns.ReverseName(s.address), Type: "PTR",
		Value: s.name}, func(ctx context.Context, _ api.DNSRecord) (maildns.Finding, error) {
		return maildns.Reverse(ctx, z.Resolver, s.address, s.name)
	})
}

// spfRecord returns the record to publish, or "" if the relays are not known.
func (z *zone) spfRecord() string {
	if len(z.spf) == 0 {
		return ""
	}
	return "v=spf1 " + strings.Join(z.spf, " ") + " ~all"
}

// mailHost returns the MX record to publish: the host of the service; empty if it is not known.
func (z *zone) mailHost() string {
	u, err := url.Parse(z.ServiceURL())
	if err != nil || u.Hostname() == "" {
		return ""
	}
	return "10 " + u.Hostname()
}

// record adds a record, checked if the DNS is asked.
func (z *zone) record(ctx context.Context, r api.DNSRecord,
	check func(context.Context, api.DNSRecord) (maildns.Finding, error)) {
	r.Status = "unchecked"
	if z.asks {
		f, err := check(ctx, r)
		if err != nil {
			r.Message, r.Advice = "The DNS did not answer: "+err.Error(), "check again"
		} else {
			r.Found, r.Message, r.Advice = f.Found, f.Message, f.Advice
			switch {
			case len(f.Found) == 0:
				r.Status = "missing"
			case f.Status != maildns.OK:
				r.Status = "differs"
			default:
				r.Status = "found"
			}
		}
	}
	z.answer.Records = append(z.answer.Records, r)
}

// checkSPF wants the terms of providers, whose relays send from many addresses, and that the addresses that
// Postroom sends from itself are covered. The term of another host is a suggestion: the record may name its
// addresses.
func (z *zone) checkSPF(ctx context.Context, r api.DNSRecord) (maildns.Finding, error) {
	f, err := maildns.SPF(ctx, z.Resolver, r.Name)
	if err != nil || f.Status != maildns.OK {
		return f, err
	}
	has := strings.Fields(strings.ToLower(f.Found[0]))
	for _, term := range z.spf {
		if strings.HasPrefix(term, "include:") && !slices.Contains(has, term) {
			f.Status, f.Message = maildns.Warn, r.Name+" lets others send for it, but does not name the relay"
			f.Advice = "add " + term + " before the last term"
		}
	}
	for _, s := range z.sources {
		one, err := maildns.SPFCovers(ctx, z.Resolver, r.Name, s.address)
		if err != nil || one.Status != maildns.OK {
			one.Found = f.Found
			return one, err
		}
	}
	return f, nil
}

// checkKey compares the published key with the key in the record to publish.
func (z *zone) checkKey(ctx context.Context, r api.DNSRecord) (maildns.Finding, error) {
	f, err := maildns.DKIM(ctx, z.Resolver, r.Name)
	if err != nil || f.Status != maildns.OK {
		return f, err
	}
	want, _, err := maildns.Tags(r.Value)
	if err != nil {
		return f, err
	}
	bare := func(key string) string { return strings.Join(strings.Fields(key), "") }
	for _, record := range f.Found {
		if tags, _, err := maildns.Tags(record); err == nil && bare(tags["p"]) == bare(want["p"]) {
			return f, nil
		}
	}
	f.Status, f.Message = maildns.Fail, r.Name+" publishes another key than the one that mail is signed with"
	f.Advice = "publish the record of this key, or sign with another selector"
	return f, nil
}

func (z *zone) checkMX(ctx context.Context, r api.DNSRecord) (maildns.Finding, error) {
	f, err := maildns.MX(ctx, z.Resolver, r.Name)
	_, want, _ := strings.Cut(r.Value, " ")
	isIt := func(mx string) bool {
		_, found, _ := strings.Cut(mx, " ")
		return strings.EqualFold(found, want)
	}
	if err == nil && f.Status == maildns.OK && want != "" && !slices.ContainsFunc(f.Found, isIt) {
		f.Status, f.Advice = maildns.Warn, "let the mail for it reach bounce.listen of Postroom, if it does not yet"
	}
	return f, err
}

// checkText wants a TXT record with exactly this value.
func (z *zone) checkText(ctx context.Context, r api.DNSRecord) (maildns.Finding, error) {
	all, err := maildns.TXT(ctx, z.Resolver, r.Name, "")
	switch {
	case err != nil:
		return maildns.Finding{}, err
	case slices.Contains(all, r.Value):
		return maildns.Finding{Status: maildns.OK, Found: all, Message: r.Name + " has the record",
			Advice: "postroom account sender verify"}, nil
	}
	return maildns.Finding{Status: maildns.Fail, Found: all, Message: r.Name + " does not have the record",
		Advice: "publish it; a new one may take an hour to be seen"}, nil
}
