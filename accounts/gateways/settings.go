package gateways

import (
	"cmp"

	"github.com/postroom/postroom/api"
)

// Settings are the settings of one relay: an account's own, or a gateway.
type Settings struct {
	server       api.SMTPServer
	oauth        *api.OAuth2
	limits       *api.Limits
	proxy        string
	localAddress string
	ehloName     string

	perDomain map[string]api.DomainLimits // for gateways

	kind api.GatewayType    // defaults to smtp
	api  api.GatewayAPI     // for types with an API
	mx   *api.GatewayDirect // for type mx; nil if nothing is set

	absent bool // the account has no own relay
	// prefixes of the fields of server and of its credentials in the API: "smtp." and "smtp.auth.", or empty
	at, login string
}

// OfAccount returns the settings of an account's own relay. Without the field smtp there is none, and only
// the fields beside it are checked.
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

func ofGateway(g api.Gateway) *Settings {
	s := &Settings{
		kind: g.Type, perDomain: g.LimitsPerDomain,
		server: api.SMTPServer{
			Preset: g.Preset, Host: g.Host, Port: g.Port, Secure: g.Secure, TLS: g.TLS, Auth: &api.SMTPAuth{
				User: g.User, Pass: g.Pass},
		},
		oauth: g.OAuth2, limits: g.Limits, proxy: g.Proxy, localAddress: g.LocalAddress, ehloName: g.SMTPEhloName,
	}
	if s.mx = g.MX; g.API != nil {
		s.api = *g.API
	}
	return s
}

// preset returns the preset of the provider; zero if there is none.
func (s *Settings) preset() preset { return presets[s.server.Preset] }

// host returns the host of the relay.
func (s *Settings) host() string { return cmp.Or(s.server.Host, s.preset().Host) }

// port returns the port of the settings or the preset; 0 if neither has one.
func (s *Settings) port() int {
	switch {
	case s.server.Port != 0:
		return s.server.Port
	case s.server.Secure:
		return s.preset().Implicit
	}
	return s.preset().Port
}

// provider returns the name of the token server: the preset's if neither a name nor a URL is set.
func (s *Settings) provider() string {
	if o := s.oauth; o.Provider != "" || o.TokenURL != "" {
		return o.Provider
	}
	if s.server.Preset == "gmail" || s.server.Preset == "office365" {
		return s.server.Preset
	}
	return ""
}

// Limits returns the limits in force: the explicit ones over the preset's.
func (s *Settings) Limits() api.Limits { return s.preset().limits(s.limits) }
