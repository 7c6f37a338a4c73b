package gateways

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
)

func TestGroups(t *testing.T) {
	t.Parallel()
	for address, want := range map[string][2]string{ // the group, and the group for type mx
		"a@example.org": {"example.org", "example.org"}, "a@Example.ORG.": {"example.org", "example.org"},
		"a@gmail.com": {"gmail.com", "google.com"}, "a@googlemail.com": {"gmail.com", "google.com"},
		"a@hotmail.com": {"outlook.com", "olc.protection.outlook.com"},
		"a@live.com":    {"outlook.com", "olc.protection.outlook.com"},
		"a@msn.com":     {"outlook.com", "olc.protection.outlook.com"},
		"a@yahoo.com":   {"yahoo.com", "yahoodns.net"}, "a@yahoo.co.uk": {"yahoo.com", "yahoodns.net"},
		"a@aol.com": {"yahoo.com", "yahoodns.net"}, "a@yahoo.co.jp": {"yahoo.co.jp", "yahoo.co.jp"},
		"a@yahoo.example.com": {"yahoo.example.com", "yahoo.example.com"},
		"a@me.com":            {"icloud.com", "mail.icloud.com"}, "a@mac.com": {"icloud.com", "mail.icloud.com"},
		"a@bücher.example": {"xn--bcher-kva.example", "xn--bcher-kva.example"},
	} {
		domain := DomainOf(address)
		got := [2]string{Group(api.GatewaySES, domain), Group(api.GatewayMX, domain)}
		if got != want {
			t.Errorf("%s is of %v, want %v", address, got, want)
		}
	}
}

// TestLimitsPerDomain: an entry replaces the entry for all domains, for all of its receiver's domains.
func TestLimitsPerDomain(t *testing.T) {
	t.Parallel()
	lines := []string{"* perMinute=100", "example.org", "gmail.com perSecond=2.5 connections=3"}
	all, err := ParseDomainLimits(append(lines[1:], "perMinute=100"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lines, FormatDomainLimits(all)); diff != "" {
		t.Error(diff)
	}
	d := NewDestinations("", all)
	for group, want := range map[string]DestinationLimit{
		"other.example": {limits.Rate{PerMinute: 100}, 0}, "example.org": {},
		"gmail.com": {limits.Rate{PerSecond: 2.5}, 3},
	} {
		if got := d.Of(group); got != want {
			t.Errorf("%s: %+v, want %+v", group, got, want)
		}
	}
	if got := NewDestinations(api.GatewayMX, all).Of("google.com"); got.Connections != 3 {
		t.Errorf("direct delivery: %+v", got)
	}
	var none *Destinations
	if none.Of("gmail.com") != (DestinationLimit{}) || none.Names("gmail.com") {
		t.Error("limits where none are set")
	}
	for _, line := range []string{"gmail.com perMinute", "gmail.com perHour=1", "gmail.com connections=1.5",
		"gmail.com perSecond=x"} {
		if _, err := ParseDomainLimits([]string{line}); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

// TestWrongLimitsPerDomain are named by their fields.
func TestWrongLimitsPerDomain(t *testing.T) {
	t.Parallel()
	for field, all := range map[string]map[string]api.DomainLimits{
		"limitsPerDomain.x.example.perSecond": {"x.example": {PerSecond: -1}},
		"limitsPerDomain.x.example.perMinute": {"x.example": {PerMinute: 1e9}},
		"limitsPerDomain.*.connections":       {"*": {Connections: 5000}},
		"limitsPerDomain.a b":                 {"a b": {}},
		"limitsPerDomain.googlemail.com":      {"gmail.com": {}, "googlemail.com": {}},
	} {
		g := api.Gateway{Gateway: "g", Name: "g", Host: "smtp.example.com", Port: 587, LimitsPerDomain: all}
		if _, err := Described(g); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v, want the field %s", err, field)
		}
	}
}
