package gateways

import (
	"crypto/x509"
	"encoding/pem"
	"math"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/accounts/oauth"
	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// Faults collects a request's invalid fields.
type Faults struct{ fault.Fields }

// Text checks a line of text that has at most limit characters.
func (f *Faults) Text(key, s string, limit int) {
	switch {
	case utf8.RuneCountInString(s) > limit:
		f.Add(key, "must not be longer than %d characters", limit)
	case !message.IsLine(s):
		f.Add(key, "must not contain control characters")
	}
}

// ID checks the name of an account or gateway.
func (f *Faults) ID(key, id string) {
	switch {
	case id == "":
		f.Add(key, "is required")
	case len(id) > 256:
		f.Add(key, "must not be longer than 256 characters")
	case !ValidID(id):
		f.Add(key, "must start with a letter or digit and contain only letters, digits and . _ @ + -")
	case id == "new":
		f.Add(key, "must not be %q, which names a page", id)
	}
}

// ValidID reports whether a name can be the id of an account or gateway.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// Check returns all wrong fields of settings. Masked secrets are valid.
func (s *Settings) Check() fault.Fields {
	var f Faults
	if s.localAddress != "" {
		if _, err := netip.ParseAddr(s.localAddress); err != nil {
			f.Add("localAddress", "must be an IP address")
		}
	}
	if s.ehloName != "" && !smtpsend.ValidHost(s.ehloName) && !addressLiteral(s.ehloName) {
		f.Add("smtpEhloName", "must be a host name, or an IP address in brackets")
	}
	if err := smtpsend.CheckProxy(s.proxy); err != nil {
		f.Add("proxy", "%v", err)
	}
	switch {
	case s.absent:
	case s.isAPI():
		s.checkAPI(&f)
	case s.kind == api.GatewayMX:
		s.checkMX(&f)
	default:
		if s.api != (api.GatewayAPI{}) {
			f.Add("api", "must be absent with type smtp")
		}
		if s.mx != nil {
			f.Add("mx", "must be absent with type smtp")
		}
		s.checkServer(&f)
		s.checkLogin(&f)
		s.checkTLS(&f)
	}
	f.limits(s.limits)
	f.perDomain(s.kind, s.perDomain)
	return f.Fields
}

// Destinations returns the fields whose host is an address that may not be dialed. Hosts with names are
// judged when they are dialed.
func (s *Store) Destinations(settings *Settings) fault.Fields {
	var f fault.Fields
	check := func(key, host string) {
		if err := s.guard.CheckHost(host); host != "" && err != nil {
			f.Add(key, "can't be used: %v", err)
		}
	}
	hostOf := func(text string) string {
		u, err := url.Parse(text)
		if err != nil {
			return "" // Check reports it
		}
		return u.Hostname()
	}
	switch {
	case settings.absent:
	case settings.kind == api.GatewayMX:
	case settings.isAPI():
		check("api.url", hostOf(settings.api.URL))
	default:
		check(settings.at+"host", settings.host())
	}
	if settings.oauth != nil {
		check("oauth2.tokenUrl", hostOf(settings.oauth.TokenURL))
	}
	check("proxy", hostOf(settings.proxy))
	return f
}

// CheckPath returns all wrong fields of the path of a message.
func (s *Store) CheckPath(p Path) fault.Fields {
	return append(p.Check(), s.Destinations(&Settings{proxy: p.Proxy, absent: true})...)
}

// checkServer checks host, port and preset.
func (s *Settings) checkServer(f *Faults) {
	name := s.server.Preset
	p, known := presets[name]
	if name != "" && !known {
		f.Add(s.at+"preset", "must be gmail, office365, ses, sendgrid, mailgun, postmark, icloud or generic")
	}
	switch host := s.host(); {
	case host != "" && !smtpsend.ValidHost(host):
		f.Add(s.at+"host", "must be a host name or an IP address, in ASCII and without port")
	case host == "" && name == "ses":
		f.Add(s.at+"host", "is required. SES has one for each region, such as "+
			"email-smtp.eu-west-1.amazonaws.com")
	case host == "":
		f.Add(s.at+"host", "is required")
	}
	switch {
	case s.server.Secure && known && p.Implicit == 0:
		f.Add(s.at+"secure",
			"must be false, because %s uses STARTTLS on port %d and has no port with TLS from the first "+
				"byte", name, p.Port)
	case s.port() < 1 || s.port() > 65535:
		f.Add(s.at+"port", "must be 1 to 65535")
	}
}

// checkLogin checks the credentials: user with password or access token, or OAuth 2.0, or none.
func (s *Settings) checkLogin(f *Faults) {
	auth := s.server.Auth
	if auth == nil {
		auth = &api.SMTPAuth{}
	}
	f.Text(s.login+"user", auth.User, 256)
	f.Text(s.login+"accessToken", auth.AccessToken, 16384)
	if len(auth.Pass) > 4096 || strings.ContainsRune(auth.Pass, 0) {
		f.Add(s.login+"pass", "must not be longer than 4096 bytes or contain a NUL")
	}
	hasSecret := auth.Pass != "" || auth.AccessToken != ""
	if s.oauth != nil {
		if hasSecret || auth.User != "" {
			f.Add("oauth2", "can't be combined with a user and password; leave one of them out")
		}
		s.checkOAuth(f, *s.oauth)
		return
	}
	switch {
	case auth.User == "" && hasSecret:
		f.Add(s.login+"user", "is required with a password or access token")
	case auth.User != "" && !hasSecret && s.login != "":
		f.Add(s.login+"pass", "is required (or accessToken); send ****** to keep the stored one")
	case auth.User != "" && !hasSecret:
		f.Add("pass", "is required with user; send ****** to keep the stored one")
	}
}

func (s *Settings) checkOAuth(f *Faults, o api.OAuth2) {
	switch {
	case !slices.Contains([]string{"", "gmail", "office365"}, o.Provider):
		f.Add("oauth2.provider", "must be gmail or office365. For other providers, set tokenUrl instead")
	case s.provider() == "" && o.TokenURL == "":
		f.Add("oauth2.provider", "is required (gmail or office365), or tokenUrl")
	}
	if o.TokenURL != "" {
		if len(o.TokenURL) > 2048 {
			f.Add("oauth2.tokenUrl", "must not be longer than 2048 characters")
		} else if err := oauth.CheckTokenURL(o.TokenURL); err != nil {
			f.Add("oauth2.tokenUrl", "%v", err)
		}
	}
	for _, field := range []struct {
		name, value string
		required    bool
		limit       int
	}{
		{"clientId", o.ClientID, true, 1024}, {"clientSecret", o.ClientSecret, false, 4096},
		{"refreshToken", o.RefreshToken, true, 16384},
		{"scope", o.Scope, false, 1024}, {"user", o.User, true, 256},
	} {
		if field.value == "" && field.required {
			f.Add("oauth2."+field.name, "is required")
		}
		f.Text("oauth2."+field.name, field.value, field.limit)
	}
}

func (s *Settings) checkTLS(f *Faults) {
	t := s.server.TLS
	if t == nil {
		return
	}
	if !slices.Contains([]string{"", "TLSv1.2", "TLSv1.3"}, t.MinVersion) {
		f.Add(s.at+"tls.minVersion", "must be TLSv1.2 or TLSv1.3")
	}
	switch {
	case !slices.Contains([]string{"", "required", "opportunistic", "off"}, t.StartTLS):
		f.Add(s.at+"tls.starttls", "must be required, opportunistic or off")
	case (t.StartTLS == "opportunistic" || t.StartTLS == "off") && s.loggedIn() && !onThisMachine(s.host()):
		f.Add(s.at+"tls.starttls", "must be required or absent with credentials, which must not travel "+
			"unencrypted")
	case t.StartTLS != "" && s.server.Secure:
		f.Add(s.at+"tls.starttls", "must be absent when %ssecure is true", s.at)
	}
	if t.CA != "" && (len(t.CA) > 65536 || !certificates(t.CA)) {
		f.Add(s.at+"tls.ca", "must be PEM certificates of at most 64 KiB")
	}
	if t.PinSHA256 != "" && (len(t.PinSHA256) > 1024 || smtpsend.CheckPin(t.PinSHA256) != nil) {
		f.Add(s.at+"tls.pinSha256",
			"must be the base64 SHA-256 of a public key (44 characters); separate several with spaces")
	}
}

// certificates reports whether a text consists of certificates in PEM, at least one.
func certificates(text string) bool {
	rest := []byte(text)
	for n := 0; ; n++ {
		if strings.TrimSpace(string(rest)) == "" {
			return n > 0
		}
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return false
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return false
		}
	}
}

func (f *Faults) limits(l *api.Limits) {
	if l == nil {
		return
	}
	f.rates("limits", *l)
	if l.Burst > 0 && l.PerSecond == 0 {
		f.Add("limits.burst", "requires limits.perSecond")
	}
}

// rates checks the numbers of limits in a field.
func (f *Faults) rates(at string, l api.Limits) {
	for _, rate := range []struct {
		name        string
		value, most float64
	}{{"perSecond", l.PerSecond, 100_000}, {"perMinute", l.PerMinute, 6_000_000}, {"perDay", l.PerDay,
		1_000_000_000}} {
		if !(rate.value >= 0 && rate.value <= rate.most) || math.IsNaN(rate.value) {
			f.Add(at+"."+rate.name, "must be 0 to %.0f", rate.most)
		}
	}
	for _, count := range []struct {
		name        string
		value, most int
	}{{"burst", l.Burst, 100_000}, {"connections", l.Connections, 1000}, {"perConnection", l.PerConnection,
		100_000}} {
		if count.value < 0 || count.value > count.most {
			f.Add(at+"."+count.name, "must be 1 to %d", count.most)
		}
	}
}

// loggedIn reports whether there are credentials.
func (s *Settings) loggedIn() bool {
	auth := s.server.Auth
	return s.oauth != nil || auth != nil && (auth.User != "" || auth.Pass != "" || auth.AccessToken != "")
}

func onThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
