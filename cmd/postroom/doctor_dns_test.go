package main

import (
	"context"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// zone is a DNS of a few records. A name that is missing does not exist; one in broken is not answered.
type zone struct {
	mx     map[string][]*net.MX
	txt    map[string][]string
	closed bool            // it knows no top-level domain
	broken map[string]bool // by name
}

func missing(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

func (z zone) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	if z.broken[name] {
		return nil, &net.DNSError{Err: "i/o timeout", Name: name, IsTimeout: true}
	}
	if r, ok := z.mx[name]; ok {
		return r, nil
	}
	return nil, missing(name)
}

func (z zone) LookupTXT(_ context.Context, name string) ([]string, error) {
	if z.broken[name] {
		return nil, &net.DNSError{Err: "server misbehaving", Name: name}
	}
	if r, ok := z.txt[name]; ok {
		return append([]string{}, r...), nil
	}
	return nil, missing(name)
}

func (z zone) LookupNS(_ context.Context, name string) ([]*net.NS, error) {
	if z.closed {
		return nil, missing(name)
	}
	return []*net.NS{{Host: "ns.example."}}, nil
}

func TestDNS(t *testing.T) {
	good := func() zone {
		return zone{
			mx: map[string][]*net.MX{"shop.example.com.": {{Host: "mx.example.com.", Pref: 10}}},
			txt: map[string][]string{
				"shop.example.com.":                {"other=1", "v=spf1 include:_spf.example.net ~all"},
				"_dmarc.example.com.":              {"v=DMARC1; p=reject"},
				"s1._domainkey.shop.example.com.":  {"v=DKIM1; k=rsa; p=MIGf"},
				"old._domainkey.shop.example.com.": {"v=DKIM1; p="},
			},
		}
	}
	for _, tc := range []struct {
		name     string
		edit     func(*zone)
		selector string
		want     map[string]string // check to status
	}{
		{name: "all in order, DMARC at the organisation's domain", want: map[string]string{"mx": ok, "spf": ok,
			"dmarc": ok}},
		{name: "a key at the selector", selector: "s1", want: map[string]string{"mx": ok, "spf": ok, "dkim": ok,
			"dmarc": ok}},
		{name: "a revoked key", selector: "old", want: map[string]string{"mx": ok, "spf": ok, "dkim": fail,
			"dmarc": ok}},
		{name: "no key at the selector", selector: "s2", want: map[string]string{"mx": ok, "spf": ok, "dkim": fail,
			"dmarc": ok}},
		{name: "nothing there", edit: func(z *zone) { *z = zone{} }, want: map[string]string{
			"mx": warn, "spf": warn, "dmarc": warn}},
		{name: "null MX", edit: func(z *zone) { z.mx["shop.example.com."] = []*net.MX{{Host: "."}} },
			want: map[string]string{"mx": fail, "spf": ok, "dmarc": ok}},
		{name: "two SPF records", edit: func(z *zone) {
			z.txt["shop.example.com."] = []string{
				"v=spf1 -all", "V=SPF1 ~all"}
		}, want: map[string]string{"mx": ok, "spf": fail, "dmarc": ok}},
		{name: "everybody may send", edit: func(z *zone) { z.txt["shop.example.com."] = []string{"v=spf1 +all"} },
			want: map[string]string{"mx": ok, "spf": warn, "dmarc": ok}},
		{name: "not quite SPF", edit: func(z *zone) { z.txt["shop.example.com."] = []string{"v=spf10 -all"} },
			want: map[string]string{"mx": ok, "spf": warn, "dmarc": ok}},
		{name: "two DMARC records", edit: func(z *zone) {
			z.txt["_dmarc.example.com."] = []string{
				"v=DMARC1; p=none", "v=DMARC1;p=reject"}
		}, want: map[string]string{"mx": ok, "spf": ok, "dmarc": fail}},
		{name: "a DNS that knows nothing", edit: func(z *zone) { *z = zone{closed: true} }, want: map[string]string{
			"dns": warn}},
		{name: "a DNS that breaks off", edit: func(z *zone) {
			z.broken = map[string]bool{"_dmarc.shop.example.com.": true}
		}, want: map[string]string{"dns": warn}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			z := good()
			if tc.edit != nil {
				tc.edit(&z)
			}
			x := &exam{resolver: z, selector: tc.selector, domains: map[string]bool{"shop.example.com": true}}
			got := map[string]string{}
			for _, f := range x.dns(t.Context()) {
				got[f.Check] = f.Status
				if f.Status != ok && f.Advice == "" {
					t.Errorf("%s: %s comes without advice", f.Check, f.Message)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDNSOfNoDomain(t *testing.T) {
	x := &exam{resolver: zone{closed: true}}
	if got := x.dns(t.Context()); got != nil {
		t.Errorf("without a domain there is nothing to ask, got %v", got)
	}
}
