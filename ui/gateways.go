package ui

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
)

// gatewaysView is the page of the relays that accounts share.
type gatewaysView struct {
	Gateways []api.GatewayInfo
	Pager    pager
}

func (u *UI) gateways(w http.ResponseWriter, r *http.Request) error {
	page := pageOf(r.URL.Query())
	got, err := u.Gateways.List(r.Context(), page, endpointsPerPage)
	if err != nil {
		return err
	}
	view := gatewaysView{Gateways: got.Gateways}
	view.Pager = pager{Page: page, Pages: got.Pages, Total: got.Total, Size: endpointsPerPage, path: "/gateways"}
	return u.show(w, r, http.StatusOK, "gateways", "Gateways", view)
}

// relayOf is a gateway's relay in the words of an account's, for the template that shows both.
func relayOf(g api.Gateway) *api.SMTPServer {
	s := &api.SMTPServer{Preset: g.Preset, Host: g.Host, Port: g.Port, Secure: g.Secure, TLS: g.TLS}
	if g.User != "" {
		s.Auth = &api.SMTPAuth{User: g.User}
	}
	return s
}

// facts says how a relay is spoken to, in a line without its host.
func facts(s *api.SMTPServer) string {
	var all []string
	say := func(when bool, what string) {
		if when {
			all = append(all, what)
		}
	}
	say(s.Host != "" && s.Preset != "", s.Preset)
	say(s.Secure, "TLS")
	if t := s.TLS; t != nil {
		say(!s.Secure && t.StartTLS != "", "STARTTLS "+t.StartTLS)
		say(t.CA != "", "authorities of its own")
		say(t.PinSHA256 != "", "pinned")
		say(t.RejectUnauthorized != nil && !*t.RejectUnauthorized, "any certificate is accepted")
	}
	if s.Auth != nil && s.Auth.User != "" {
		all = append(all, "logs in as "+s.Auth.User)
	}
	return strings.Join(all, " · ")
}

// limits words limits; empty: there are none.
func limits(l *api.Limits) string {
	if l == nil {
		return ""
	}
	var all []string
	say := func(n float64, what string) {
		if n > 0 {
			all = append(all, strconv.FormatFloat(n, 'f', -1, 64)+" "+what)
		}
	}
	say(l.PerSecond, "a second")
	say(float64(l.Burst), "at once")
	say(l.PerMinute, "a minute")
	say(l.PerDay, "a day")
	say(float64(l.Connections), "connections")
	say(float64(l.PerConnection), "messages a connection")
	return strings.Join(all, ", ")
}
