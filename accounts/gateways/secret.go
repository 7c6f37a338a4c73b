package gateways

import (
	"net/url"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb/records"
)

// AccountSecrets returns the secrets of an account's own relay, by pointer. It first gives the account its
// own copy of what holds them.
func AccountSecrets(a *api.Account) []records.Secret {
	a.OAuth2 = clone(a.OAuth2)
	auth := &api.SMTPAuth{} // none
	if a.SMTP != nil && a.SMTP.Auth != nil {
		auth = clone(a.SMTP.Auth)
		a.SMTP = clone(a.SMTP)
		a.SMTP.Auth = auth
	}
	return OfAccount(*a).secrets(&auth.Pass, &auth.AccessToken, &a.Proxy)
}

// gatewaySecrets is AccountSecrets for a gateway.
func gatewaySecrets(g *api.Gateway) []records.Secret {
	g.OAuth2 = clone(g.OAuth2)
	return ofGateway(*g).secrets(&g.Pass, nil, &g.Proxy)
}

// secrets returns the secrets of settings; those of the arguments are not in s. A secret that opens the relay
// (or a refresh token, whose access tokens are sent there) must not be sent to another relay, nor through a
// proxy that was set later.
func (s *Settings) secrets(pass, accessToken, proxy *string) []records.Secret {
	relay := records.Place{Field: s.at + "host", Host: s.host()}
	trust := records.Place{Field: s.at + "tls", Host: s.loosened()}
	through := records.Place{Field: "proxy", Host: hostOf(s.proxy)}
	goes := []records.Place{relay, through, trust}
	all := []records.Secret{
		{Field: s.login + "pass", Value: pass, Goes: goes},
		{Field: s.login + "accessToken", Value: accessToken, Goes: goes},
	}
	if o := s.oauth; o != nil {
		goes = append([]records.Place{{Field: "oauth2.tokenUrl", Host: s.provider() + "/" + hostOf(o.TokenURL)}},
			goes...)
		all = append(all,
			records.Secret{Field: "oauth2.clientSecret", Value: &o.ClientSecret, Goes: goes},
			records.Secret{Field: "oauth2.refreshToken", Value: &o.RefreshToken, Goes: goes},
		)
	}
	return append(all, records.Secret{Field: "proxy", Value: proxy, URL: true, Goes: []records.Place{through}})
}

// loosened returns the parts of the protection of the connection that are off; empty: none. Who may change
// settings must not get a password sent to a server that only claims to be the relay.
func (s *Settings) loosened() string {
	t := s.server.TLS
	if t == nil {
		return ""
	}
	var all []string
	if t.RejectUnauthorized != nil && !*t.RejectUnauthorized && t.PinSHA256 == "" {
		all = append(all, "any certificate")
	}
	if t.StartTLS == "opportunistic" || t.StartTLS == "off" {
		all = append(all, "starttls "+t.StartTLS)
	}
	return strings.Join(all, ", ")
}

// hostOf returns the host of a URL; empty: there is none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
