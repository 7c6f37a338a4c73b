package ui

import (
	"net/http"
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

// facts describes the connection to a relay in a line, without its host.
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
