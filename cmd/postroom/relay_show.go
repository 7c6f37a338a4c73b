package main

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
)

// relayURL returns a relay in one line, without its password. It may be the name of a preset.
func relayURL(s *api.SMTPServer) string {
	switch {
	case s == nil:
		return "-"
	case s.Host == "":
		return s.Preset
	}
	scheme, user, host := "smtp://", "", s.Host
	if s.Secure {
		scheme = "smtps://"
	}
	if s.Auth != nil && s.Auth.User != "" {
		user = s.Auth.User + "@"
	}
	if s.Port != 0 {
		host = net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	}
	return scheme + user + host
}

// way returns the relays of an account's mail, in order.
func way(a api.Account) string {
	var all []string
	if a.SMTP != nil {
		all = append(all, relayURL(a.SMTP))
	}
	if len(a.Gateways) > 0 {
		all = append(all, "gateways "+routes(a.Gateways))
	}
	return orDash(strings.Join(all, ", then "))
}

// routes lists the gateways of an account as --gateway takes them.
func routes(list []api.Route) string {
	out := make([]string, len(list))
	for i, r := range list {
		out[i] = r.Gateway
		if r.Lane != "" {
			out[i] = string(r.Lane) + ":" + r.Gateway
		}
		if r.Weight > 0 {
			out[i] += "=" + strconv.Itoa(r.Weight)
		}
	}
	return strings.Join(out, ", ")
}

// add adds the settings to a grid, except empty ones.
func (s relaySettings) add(g *grid) {
	row := g.fact
	if s.SMTP != nil {
		row("preset", s.SMTP.Preset)
	}
	if r := s.SMTP; r != nil && r.Host == "" && r.Auth != nil {
		row("login", r.Auth.User)
	}
	if o := s.OAuth2; o != nil {
		provider := cmp.Or(o.TokenURL, o.Provider)
		if provider == "" && s.SMTP != nil {
			provider = s.SMTP.Preset
		}
		row("login", fmt.Sprintf("OAuth 2.0 of %s, as %s", provider, o.User))
	}
	if s.SMTP != nil {
		row("tls", trust(s.SMTP.TLS))
	}
	row("limits", s.limits.Words())
	row("proxy", s.Proxy)
	row("local address", s.LocalAddress)
	row("EHLO name", s.SMTPEhloName)
}

// trust returns the TLS settings that are not the default.
func trust(t *api.SMTPTLS) string {
	if t == nil {
		return ""
	}
	var all []string
	note := func(holds bool, text string) {
		if holds {
			all = append(all, text)
		}
	}
	note(t.StartTLS != "", "STARTTLS "+t.StartTLS)
	note(t.MinVersion != "", t.MinVersion+" at least")
	note(t.CA != "", "authorities of its own")
	note(t.PinSHA256 != "", "pinned")
	note(t.RejectUnauthorized != nil && !*t.RejectUnauthorized, "ANY certificate is accepted")
	return strings.Join(all, ", ")
}
