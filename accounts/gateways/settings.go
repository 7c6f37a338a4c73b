package gateways

import (
	"github.com/postroom/postroom/api"
)

// Settings are what it takes to reach one relay, as an account's own relay and a gateway both have it.
type Settings struct {
	server       api.SMTPServer
	oauth        *api.OAuth2
	limits       *api.Limits
	proxy        string
	localAddress string
	ehloName     string

	absent bool // the account has no relay of its own
	// what the client calls the fields of server and of its credentials: "smtp." and "smtp.auth.", or nothing
	at, login string
}

// OfAccount takes the settings of an account's own relay. Without the field smtp there is none, and only what
// stands beside it is checked.
func OfAccount(a api.Account) *Settings {
	s := &Settings{
		limits: a.Limits, proxy: a.Proxy, localAddress: a.LocalAddress, ehloName: a.SMTPEhloName, oauth: a.OAuth2,
		absent: a.SMTP == nil, at: "smtp.", login: "smtp.auth.",
	}
	if a.SMTP != nil {
		s.server = *a.SMTP
	}
	return s
}

// ofGateway takes the settings of a gateway.
func ofGateway(g api.Gateway) *Settings {
	return &Settings{
		server: api.SMTPServer{
			Preset: g.Preset, Host: g.Host, Port: g.Port, Secure: g.Secure, TLS: g.TLS, Auth: &api.SMTPAuth{
				User: g.User, Pass: g.Pass},
		},
		oauth: g.OAuth2, limits: g.Limits, proxy: g.Proxy, localAddress: g.LocalAddress, ehloName: g.SMTPEhloName,
	}
}

// preset is what is known of the provider; zero without one.
func (s *Settings) preset() preset { return presets[s.server.Preset] }

// host is where the relay is.
func (s *Settings) host() string {
	if s.server.Host == "" {
		return s.preset().Host
	}
	return s.server.Host
}

// port is the relay's, as far as settings and preset say.
func (s *Settings) port() int {
	switch {
	case s.server.Port != 0:
		return s.server.Port
	case s.server.Secure:
		return s.preset().Implicit
	}
	return s.preset().Port
}

// provider names the token server: that of the preset when neither it nor a URL is given.
func (s *Settings) provider() string {
	if o := s.oauth; o.Provider != "" || o.TokenURL != "" {
		return o.Provider
	}
	if s.server.Preset == "gmail" || s.server.Preset == "office365" {
		return s.server.Preset
	}
	return ""
}

// Limits are the limits that hold: the explicit ones over those of the preset.
func (s *Settings) Limits() api.Limits { return s.preset().limits(s.limits) }
