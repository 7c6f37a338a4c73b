package gateways

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb/records"
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
	g.OAuth2, g.API = clone(g.OAuth2), clone(g.API)
	if s := ofGateway(*g); s.isAPI() && g.API != nil {
		through := records.Place{Field: "proxy", Value: origin(s.proxy)}
		return append(s.apiSecrets(g.API), records.Secret{Field: "proxy", Value: &g.Proxy, URL: true,
			Goes: []records.Place{through}})
	}
	return ofGateway(*g).secrets(&g.Pass, nil, &g.Proxy)
}

// secrets returns the settings' secrets; the arguments' are not in s. A secret that opens the relay (or a
// refresh token, whose access tokens are sent there) must not be sent to another relay. It must not go
// through a proxy that was set later, or to a server that only claims to be the relay.
func (s *Settings) secrets(pass, accessToken, proxy *string) []records.Secret {
	through := records.Place{Field: "proxy", Value: origin(s.proxy)}
	goes := append(s.place(), through)
	all := []records.Secret{
		{Field: s.login + "pass", Value: pass, Goes: goes},
		{Field: s.login + "accessToken", Value: accessToken, Goes: goes},
	}
	if o := s.oauth; o != nil {
		goes = append([]records.Place{{Field: "oauth2.tokenUrl", Value: s.provider() + " " + o.TokenURL}}, goes...)
		all = append(all,
			records.Secret{Field: "oauth2.clientSecret", Value: &o.ClientSecret, Goes: goes},
			records.Secret{Field: "oauth2.refreshToken", Value: &o.RefreshToken, Goes: goes},
		)
	}
	return append(all, records.Secret{Field: "proxy", Value: proxy, URL: true, Goes: []records.Place{through}})
}

// place returns where the secrets of the relay go. A host or port of a preset is named by the preset: a later
// version may know another one, and sealed secrets have to open then.
func (s *Settings) place() []records.Place {
	host, port := strings.ToLower(s.server.Host), ""
	if host == "" {
		host = "preset " + s.server.Preset
	}
	if s.server.Port != 0 {
		port = strconv.Itoa(s.server.Port)
	} else {
		port = "preset " + s.server.Preset
	}
	tls := api.SMTPTLS{}
	if s.server.TLS != nil {
		tls = *s.server.TLS
	}
	unverified := tls.RejectUnauthorized != nil && !*tls.RejectUnauthorized
	at := s.at + "tls."
	return []records.Place{{Field: s.at + "host", Value: host}, {Field: s.at + "port", Value: port},
		{Field: s.at + "secure", Value: strconv.FormatBool(s.server.Secure)},
		{Field: at + "starttls", Value: tls.StartTLS},
		{Field: at + "rejectUnauthorized", Value: strconv.FormatBool(!unverified)},
		{Field: at + "pinSha256", Value: strings.Join(strings.Fields(tls.PinSHA256), " ")},
		{Field: at + "ca", Value: strings.TrimSpace(tls.CA)}}
}

// origin returns scheme, host and port of a URL; empty if there is none.
func origin(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return ""
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
