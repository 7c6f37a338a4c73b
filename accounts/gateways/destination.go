package gateways

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/accounts/limits"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// receiver is a large receiver, whose domains share limits.
type receiver struct {
	name    string
	others  []string // its other domains
	servers string   // the group that package mxsend puts its servers into
}

// receivers is the table of large receivers.
var receivers = []receiver{
	{"gmail.com", []string{"googlemail.com"}, "google.com"},
	{"outlook.com", []string{"hotmail.com", "live.com", "msn.com"}, "olc.protection.outlook.com"},
	{"yahoo.com", []string{"aol.com"}, "yahoodns.net"}, // and yahoo in other countries
	{"icloud.com", []string{"me.com", "mac.com"}, "mail.icloud.com"},
}

// DomainOf returns an address' domain as the DNS has it.
func DomainOf(address string) string {
	domain := message.ASCIIDomain(address[strings.LastIndexByte(address, '@')+1:])
	return strings.TrimSuffix(strings.ToLower(domain), ".")
}

// Group returns the group that a domain shares limits with, as far as its name shows: its receiver, or the
// domain. Package mxsend has the groups for the type mx.
func Group(kind api.GatewayType, domain string) string {
	name := domain
	if suffix, ok := strings.CutPrefix(domain, "yahoo."); ok && suffix != "co.jp" { // which is another company
		if public, _ := publicsuffix.PublicSuffix(domain); public == suffix {
			name = "yahoo.com"
		}
	}
	for _, r := range receivers {
		if r.name != name && !slices.Contains(r.others, name) {
			continue
		}
		if kind == api.GatewayMX {
			return r.servers
		}
		return r.name
	}
	return name
}

// DestinationLimit is the limit of a gateway for one group of recipients' domains. The zero value bounds
// nothing.
type DestinationLimit struct {
	Rate        limits.Rate
	Connections int // messages under way, of all processes together; 0 means any number
}

// Destinations are the limits of a gateway for groups of recipients' domains.
type Destinations struct {
	usual DestinationLimit
	own   map[string]DestinationLimit // of groups with their own limits
}

// Of returns a group's limit.
func (d *Destinations) Of(group string) DestinationLimit {
	if d == nil {
		return DestinationLimit{}
	}
	if own, ok := d.own[group]; ok {
		return own
	}
	return d.usual
}

// Names reports whether the settings have a limit for a group of this name.
func (d *Destinations) Names(group string) bool {
	if d == nil {
		return false
	}
	_, ok := d.own[group]
	return ok
}

// NewDestinations returns the limits in settings; nil if there are none.
func NewDestinations(kind api.GatewayType, settings map[string]api.DomainLimits) *Destinations {
	if len(settings) == 0 {
		return nil
	}
	d := &Destinations{own: map[string]DestinationLimit{}}
	for domain, l := range settings {
		limit := DestinationLimit{limits.Rate{PerSecond: l.PerSecond, PerMinute: l.PerMinute}, l.Connections}
		if domain == api.AllDomains {
			d.usual = limit
		} else {
			d.own[Group(kind, DomainOf(domain))] = limit
		}
	}
	return d
}

// mostPerDomain bounds the entries of limitsPerDomain.
const mostPerDomain = 100

// perDomain checks the limits for each domain.
func (f *Faults) perDomain(kind api.GatewayType, settings map[string]api.DomainLimits) {
	const field = "limitsPerDomain"
	if len(settings) > mostPerDomain {
		f.Add(field, "must not have more than %d entries", mostPerDomain)
	}
	groups := map[string]string{}
	for _, domain := range slices.Sorted(maps.Keys(settings)) {
		at, l := field+"."+domain, settings[domain]
		f.rates(at, api.Limits{PerSecond: l.PerSecond, PerMinute: l.PerMinute, Connections: l.Connections})
		if domain == api.AllDomains {
			continue
		}
		group := Group(kind, DomainOf(domain))
		switch other := groups[group]; {
		case !smtpsend.ValidHost(DomainOf(domain)):
			f.Add(at, "must be a domain, or * for all others")
		case other != "":
			f.Add(at, "has the same limits as %s; remove one of them", other)
		}
		groups[group] = domain
	}
}

// FormatDomainLimits returns limits as lines such as "gmail.com perMinute=100 connections=2", in the order of
// the domains.
func FormatDomainLimits(all map[string]api.DomainLimits) []string {
	var lines []string
	for _, domain := range slices.Sorted(maps.Keys(all)) {
		line, l := domain, all[domain]
		for _, field := range []struct {
			name  string
			value float64
		}{{"perSecond", l.PerSecond}, {"perMinute", l.PerMinute}, {"connections", float64(l.Connections)}} {
			if field.value != 0 {
				line += " " + field.name + "=" + strconv.FormatFloat(field.value, 'f', -1, 64)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// ParseDomainLimits reads lines of [FormatDomainLimits]. A line without a domain is for all domains.
func ParseDomainLimits(lines []string) (map[string]api.DomainLimits, error) {
	var all map[string]api.DomainLimits
	for _, line := range lines {
		domain := ""
		var l api.DomainLimits
		for i, word := range strings.Fields(line) {
			name, text, isLimit := strings.Cut(word, "=")
			if i == 0 && !isLimit {
				domain = word
				continue
			}
			value, err := strconv.ParseFloat(text, 64)
			switch {
			case err == nil && name == "perSecond":
				l.PerSecond = value
			case err == nil && name == "perMinute":
				l.PerMinute = value
			case err == nil && name == "connections" && value == float64(int(value)):
				l.Connections = int(value)
			default:
				return nil, fmt.Errorf("%q isn't a limit: write, for example, gmail.com perSecond=5 perMinute=100 "+
					"connections=2", word)
			}
		}
		if all == nil {
			all = map[string]api.DomainLimits{}
		}
		all[cmp.Or(domain, api.AllDomains)] = l
	}
	return all, nil
}
