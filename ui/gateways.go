package ui

import (
	"net/http"
	"strings"

	"github.com/postroom/postroom/api"
)

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
	view.Pager = pager{got.PageNumbers, endpointsPerPage, "/gateways", nil}
	return u.show(w, r, http.StatusOK, "gateways", "Gateways", view)
}

// relayOf returns a gateway's relay as that of an account, for the template that shows both.
func relayOf(g api.Gateway) *api.SMTPServer {
	s := &api.SMTPServer{Preset: g.Preset, Host: g.Host, Port: g.Port, Secure: g.Secure, TLS: g.TLS}
	if g.User != "" {
		s.Auth = &api.SMTPAuth{User: g.User, Pass: g.Pass}
	}
	return s
}

// facts returns the settings of a relay in one line, without its host.
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
