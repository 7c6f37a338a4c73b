package maildns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
)

// hosts is a zone with MX records, addresses and names of addresses too.
type hosts struct {
	zone
	mx    map[string][]string
	a     map[string][]string
	names map[string][]string
}

func missing(name string) error { return &net.DNSError{Name: name, IsNotFound: true} }

func (h hosts) LookupMX(_ context.Context, name string) (all []*net.MX, err error) {
	for _, host := range h.mx[strings.TrimSuffix(name, ".")] {
		all = append(all, &net.MX{Host: host + "."})
	}
	if all == nil {
		return nil, missing(name)
	}
	return all, nil
}

func (h hosts) LookupNetIP(_ context.Context, _, name string) (all []netip.Addr, err error) {
	for _, address := range h.a[strings.TrimSuffix(name, ".")] {
		all = append(all, netip.MustParseAddr(address))
	}
	if all == nil {
		return nil, missing(name)
	}
	return all, nil
}

func (h hosts) LookupAddr(_ context.Context, address string) ([]string, error) {
	if h.names[address] == nil {
		return nil, missing(address)
	}
	return h.names[address], nil
}

// TestSPFCovers: the zones and records of RFC 7208 appendix A, and what makes a record invalid.
func TestSPFCovers(t *testing.T) {
	deep := zone{}
	for i := range 12 {
		deep[fmt.Sprintf("d%d.test", i)] = []string{fmt.Sprintf("v=spf1 include:d%d.test -all", i+1)}
	}
	for _, row := range []struct {
		record string
		passes string // addresses
		fails  string
		status string // all others' status
	}{
		{"v=spf1 +all", "192.0.2.129 203.0.113.1 2001:db8::1", "", ""},
		{"v=spf1 a -all", "192.0.2.10 192.0.2.11", "192.0.2.12 192.0.2.129 2001:db8::1", ""},
		{"v=spf1 a:example.org -all", "", "192.0.2.10 192.0.2.140", ""},
		{"v=spf1 mx -all", "192.0.2.129 192.0.2.130", "192.0.2.10 192.0.2.140", ""},
		{"v=spf1 mx:example.org -all", "192.0.2.140", "192.0.2.129", ""},
		{"v=spf1 mx mx:example.org -all", "192.0.2.129 192.0.2.130 192.0.2.140", "192.0.2.131", ""},
		{"v=spf1 mx/30 mx:example.org/30 -all", "192.0.2.128 192.0.2.131 192.0.2.143", "192.0.2.132 192.0.2.139",
			""},
		{"v=spf1 ip4:192.0.2.128/28 -all", "192.0.2.129 192.0.2.130 192.0.2.140", "192.0.2.65 192.0.2.144", ""},
		{"v=spf1 include:example.net ~all", "192.0.2.200", "", "192.0.2.201"},
		{"v=spf1 redirect=example.net", "192.0.2.200", "192.0.2.201", ""},
		{"v=spf1 ip6:2001:db8::/32 A//64 ?all", "2001:db8::1 192.0.2.10", "", "2001:db9::1"},
		{"v=spf1 -a ip4:192.0.2.10 -all", "", "192.0.2.10", ""},
		{"v=spf1 exists:example.com -all", "203.0.113.1", "", ""},
		{"v=spf1 exp=x.test mx ?all", "192.0.2.129", "", "192.0.2.10"},
		{"v=spf1", "", "", "192.0.2.10"},
		{"v=spf1 include:%{d}.test ?all", "", "", "192.0.2.10"},
		{"v=spf1 include:d1.test -all", "", "192.0.2.10", ""},
		{"v=spf1 include:none.test -all", "", "192.0.2.10", ""},
		{"v=spf1 redirect=none.test", "", "192.0.2.10", ""},
		{"v=spf1 ipv4:192.0.2.10 -all", "", "192.0.2.10", ""},
		{"v=spf1 ip4:192.0.2.300 -all", "", "192.0.2.10", ""},
		{"v=spf1 a/33 -all", "", "192.0.2.10", ""},
	} {
		h := hosts{zone: zone{"example.com": []string{row.record, "hello"},
			"example.net": []string{"v=spf1 ip4:192.0.2.200 -all"}},
			mx: map[string][]string{"example.com": {"mail-a.example.com", "mail-b.example.com"},
				"example.org": {"mail-c.example.org"}},
			a: map[string][]string{"example.com": {"192.0.2.10", "192.0.2.11"}, "mail-a.example.com": {"192.0.2.129"},
				"mail-b.example.com": {"192.0.2.130"}, "mail-c.example.org": {"192.0.2.140"}}}
		for name, record := range deep {
			h.zone[name] = record
		}
		for status, addresses := range map[string]string{OK: row.passes, Fail: row.fails, Warn: row.status} {
			for _, address := range strings.Fields(addresses) {
				got, err := SPFCovers(t.Context(), h, "example.com", netip.MustParseAddr(address))
				if err != nil || got.Status != status || (status == OK) != (got.Advice == "") {
					t.Errorf("%s, %s: %+v, %v", row.record, address, got, err)
				}
			}
		}
	}
	away := errors.New("no route")
	if _, err := SPFCovers(t.Context(), hosts{zone: zone{"example.com": away}}, "example.com",
		netip.MustParseAddr("192.0.2.1")); !errors.Is(err, away) {
		t.Error(err)
	}
	two := hosts{zone: zone{"example.com": []string{"v=spf1 +all", "v=spf1 -all"}}}
	if got, err := SPFCovers(t.Context(), two, "example.com", netip.MustParseAddr("192.0.2.1")); err != nil ||
		got.Status != Fail {
		t.Errorf("two records: %+v, %v", got, err)
	}
}

func TestReverse(t *testing.T) {
	h := hosts{names: map[string][]string{"192.0.2.1": {"Out.example.com."}, "192.0.2.2": {"host.isp.test."},
		"192.0.2.3": {"lost.example.com."}, "2001:db8::1": {"six.example.com."}},
		a: map[string][]string{"out.example.com": {"192.0.2.1"}, "lost.example.com": {"192.0.2.9"},
			"six.example.com": {"192.0.2.1", "2001:db8::1"}}}
	for _, row := range []struct{ address, name, status string }{
		{"192.0.2.1", "out.example.com", OK}, {"192.0.2.1", "OUT.example.com.", OK}, {"2001:db8::1",
			"six.example.com", OK},
		{"192.0.2.2", "out.example.com", Warn}, {"192.0.2.3", "lost.example.com", Fail}, {"192.0.2.4",
			"out.example.com", Fail},
	} {
		got, err := Reverse(t.Context(), h, netip.MustParseAddr(row.address),
			strings.TrimSuffix(strings.ToLower(row.name), "."))
		if err != nil || got.Status != row.status {
			t.Errorf("%+v: %+v, %v", row, got, err)
		}
	}
}
