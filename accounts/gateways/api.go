package gateways

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/smtpsend"
	"github.com/postroom/postroom/smtpsend/apisend"
)

// isAPI reports whether the gateway is spoken to over the API of a provider, or of the user's own.
func (s *Settings) isAPI() bool {
	return s.kind != "" && s.kind != api.GatewaySMTP && s.kind != api.GatewayMX
}

// target returns the settings of an API ready to use.
func (s *Settings) target(id, record string, l api.Limits) apisend.Target {
	t := apisend.Target{
		Type: s.kind, ID: id, Connections: l.Connections, Proxy: s.proxy, URL: s.api.URL, Key: s.api.Key,
		Secret: s.api.Secret, Region: s.api.Region, Domain: s.api.Domain, Stream: s.api.Stream, Pool: s.api.Pool,
		Subaccount: s.api.Subaccount, Sandbox: s.api.Sandbox, Batch: s.api.Batch,
	}
	if l.Connections > 0 && record != "" {
		t.Shared = record
	}
	return t
}

// apiSecrets are the secrets of an API, by pointer, with where they go. A key that was stored is not sent to
// another provider, region, host or domain.
func (s *Settings) apiSecrets(a *api.GatewayAPI) []records.Secret {
	goes := s.apiPlace()
	return []records.Secret{{Field: "api.key", Value: &a.Key, Goes: goes},
		{Field: "api.secret", Value: &a.Secret, Goes: goes},
		{Field: "api.webhookSecret", Value: &a.WebhookSecret, Goes: goes}}
}

// apiPlace returns where the secrets of an API go.
func (s *Settings) apiPlace() []records.Place {
	return []records.Place{{Field: "type", Value: string(s.kind)}, {Field: "api.region", Value: s.api.Region},
		{Field: "api.url", Value: origin(s.api.URL)}, {Field: "api.domain", Value: strings.ToLower(s.api.Domain)},
		{Field: "proxy", Value: origin(s.proxy)}}
}

// apiFields says which fields of api.GatewayAPI a type has, and which of them it needs.
type apiFields struct{ needs, has []string }

// apiTypes is the table of docs/gateways.md.
var apiTypes = map[api.GatewayType]apiFields{
	api.GatewayHTTP:     {[]string{"url"}, []string{"secret", "sandbox", "webhookSecret"}},
	api.GatewaySES:      {[]string{"region"}, []string{"key", "secret", "url", "pool", "webhookSecret"}},
	api.GatewaySendGrid: {[]string{"key"}, []string{"region", "url", "pool", "sandbox", "webhookSecret"}},
	api.GatewayMailgun:  {[]string{"key", "domain"}, []string{"region", "url", "sandbox", "webhookSecret"}},
	api.GatewayPostmark: {[]string{"key"}, []string{"secret", "url", "stream", "batch", "webhookSecret"}},
	api.GatewayMailjet:  {[]string{"key", "secret"}, []string{"url", "sandbox", "batch", "webhookSecret"}},
	api.GatewaySparkPost: {[]string{"key"}, []string{"region", "url", "pool", "subaccount", "sandbox",
		"webhookSecret"}},
	api.GatewayBrevo:    {[]string{"key"}, []string{"url", "sandbox", "webhookSecret"}},
	api.GatewayResend:   {[]string{"key"}, []string{"url", "batch", "webhookSecret"}},
	api.GatewayMandrill: {[]string{"key"}, []string{"url", "pool", "subaccount", "webhookSecret"}},
}

var awsRegion = regexp.MustCompile(`^[a-z]{2,3}(-[a-z]+)+-[0-9]{1,2}$`)

// checkAPI checks the fields of a gateway whose type is not smtp.
func (s *Settings) checkAPI(f *Faults) {
	fields, known := apiTypes[s.kind]
	if !known || !apisend.Known(s.kind) {
		f.Add("type", "must be smtp, mx, %s", strings.Join(typeNames(), ", "))
		return
	}
	a := s.api
	values := map[string]string{"key": a.Key, "secret": a.Secret, "region": a.Region, "url": a.URL,
		"domain": a.Domain, "stream": a.Stream, "pool": a.Pool, "subaccount": a.Subaccount,
		"webhookSecret": a.WebhookSecret}
	set := map[string]bool{"sandbox": a.Sandbox, "batch": a.Batch != 0}
	for name, value := range values {
		set[name] = value != ""
	}
	for name := range set {
		switch needed := slices.Contains(fields.needs, name); {
		case needed && !set[name]:
			f.Add("api."+name, "is required with type %s", s.kind)
		case set[name] && !needed && !slices.Contains(fields.has, name):
			f.Add("api."+name, "must be absent with type %s", s.kind)
		}
	}
	for _, name := range []string{"key", "secret", "stream", "pool", "subaccount", "domain", "region"} {
		if value := values[name]; len(value) > 512 || strings.ContainsFunc(value, unprintable) {
			f.Add("api."+name, "must be at most 512 printable ASCII characters, without spaces and line "+
				"breaks")
		}
	}
	s.checkAPIPlace(f)
	s.checkHookSecret(f)
	if s.kind == api.GatewayHTTP && a.Secret != "" && a.Secret != records.Mask {
		if _, err := standardwebhooks.NewWebhook(a.Secret); err != nil || !strings.HasPrefix(a.Secret, "whsec_") {
			f.Add("api.secret", "must be whsec_ and the base64 of 24 to 64 bytes")
		}
	}
	if most := apisend.MostOfList(s.kind); a.Batch < 0 || a.Batch > most && slices.Contains(fields.has,
		"batch") {
		f.Add("api.batch", "must be 1 to %d with type %s", most, s.kind)
	}
	if s.limits != nil && s.limits.PerConnection != 0 {
		f.Add("limits.perConnection", "must be absent with type %s", s.kind)
	}
	if s.mx != nil {
		f.Add("mx", "must be absent with type %s", s.kind)
	}
	s.checkAbsent(f)
}

// checkAPIPlace checks where requests go.
func (s *Settings) checkAPIPlace(f *Faults) {
	a := s.api
	switch {
	case a.Region == "":
	case s.kind == api.GatewaySES && !awsRegion.MatchString(a.Region):
		f.Add("api.region", "must be the name of a region, such as eu-west-1")
	case s.kind != api.GatewaySES && a.Region != "us" && a.Region != "eu":
		f.Add("api.region", "must be us or eu")
	}
	if a.Domain != "" && !smtpsend.ValidHost(a.Domain) {
		f.Add("api.domain", "must be the name of a domain")
	}
	if a.URL == "" {
		return
	}
	u, err := url.Parse(a.URL)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" ||
		u.Fragment != "" || len(a.URL) > 2048:
		f.Add("api.url", "must be an address such as https://mail.example.com/send")
	case u.User != nil:
		f.Add("api.url", "must not contain a user or password")
	case u.Scheme == "http" && !onThisMachine(u.Hostname()):
		f.Add("api.url", "must start with https://, unless the host is this machine")
	}
}

// checkAbsent refuses the fields of SMTP.
func (s *Settings) checkAbsent(f *Faults) {
	auth := cmp.Or(s.server.Auth, &api.SMTPAuth{})
	for _, field := range []struct {
		name string
		set  bool
	}{
		{"preset", s.server.Preset != ""}, {"host", s.server.Host != ""}, {"port", s.server.Port != 0},
		{"secure", s.server.Secure}, {"tls", s.server.TLS != nil}, {"user", auth.User != ""},
		{"pass", auth.Pass != ""}, {"oauth2", s.oauth != nil}, {"localAddress", s.localAddress != ""},
		{"smtpEhloName", s.ehloName != ""}, {"limits.perConnection", s.limits != nil &&
			s.limits.PerConnection != 0},
	} {
		if field.set {
			f.Add(field.name, "must be absent with type %s", s.kind)
		}
	}
}

// typeNames returns the types whose API is known.
func typeNames() []string {
	var names []string
	for _, t := range apisend.Types() {
		names = append(names, string(t))
	}
	return names
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// Described returns a gateway that is not stored, to be tried. Invalid names every wrong field.
func Described(g api.Gateway) (Relay, error) {
	settings := ofGateway(g)
	if err := fault.InvalidFields(settings.Check()); err != nil {
		return Relay{}, err
	}
	return settings.Relay(""), nil
}

// APIFields returns the fields of api.GatewayAPI that a type needs, and its optional ones.
func APIFields(t api.GatewayType) (needs, has []string) { return apiTypes[t].needs, apiTypes[t].has }

// withSecret returns a gateway whose requests are signed with a secret, which it makes if there is none.
func withSecret(g api.Gateway) (with api.Gateway, made string) {
	if g.Type != api.GatewayHTTP || g.API != nil && g.API.Secret != "" {
		return g, ""
	}
	g.API = clone(cmp.Or(g.API, &api.GatewayAPI{}))
	g.API.Secret = standardSecret()
	return g, g.API.Secret
}

// standardSecret makes a secret of Standard Webhooks.
func standardSecret() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(raw)
}
