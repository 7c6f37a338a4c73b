package accounts

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/message"
)

// maxDelay bounds one delay between attempts.
const maxDelay = 30 * 24 * time.Hour

var (
	idPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)
	labelPattern = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?$`)
)

// faults collects what is wrong with a request.
type faults []fault.Field

func (f *faults) add(key, format string, args ...any) {
	*f = append(*f, fault.Field{Key: key, Message: fmt.Sprintf(format, args...)})
}

// validate reports everything wrong with an account at once.
func validate(account api.Account) error {
	var f faults
	switch id := account.Account; {
	case id == "":
		f.add("account", "is required")
	case len(id) > 256:
		f.add("account", "must not be longer than 256 characters")
	case !idPattern.MatchString(id):
		f.add("account", "must begin with a letter or digit and contain only letters, digits and . _ @ + -")
	}
	f.text("name", account.Name, 256)
	if _, err := message.NormalizeAddress(account.Email); err != nil {
		f.add("email", "%v", err)
	}
	f.webhooks(account.Webhooks)
	f.relay(account.SMTP, account.LocalAddress, account.SMTPEhloName)
	if l := account.Limits; l != nil {
		f.limit("limits.connections", l.Connections, 1000)
		f.limit("limits.perConnection", l.PerConnection, 100_000)
	}
	if len(account.Retry) > 100 {
		f.add("retry", "must not have more than 100 delays")
	}
	for i, s := range account.Retry {
		if d, err := time.ParseDuration(s); err != nil || d <= 0 || d > maxDelay {
			f.add(fmt.Sprintf("retry[%d]", i), "must be a delay such as 30s, 5m or 8h, at most 720h")
		}
	}
	return fault.InvalidFields(f)
}

// relay checks how a relay is reached.
func (f *faults) relay(s *api.SMTPServer, localAddress, ehloName string) {
	if localAddress != "" {
		if _, err := netip.ParseAddr(localAddress); err != nil {
			f.add("localAddress", "must be an IP address")
		}
	}
	if ehloName != "" && !validHost(ehloName) && !addressLiteral(ehloName) {
		f.add("smtpEhloName", "must be a host name, or an IP address in brackets")
	}
	if s == nil {
		f.add("smtp", "is required: the relay this account's mail goes through")
		return
	}
	switch {
	case s.Host == "":
		f.add("smtp.host", "is required")
	case !validHost(s.Host):
		f.add("smtp.host", "must be a host name or an IP address, in ASCII and without port")
	}
	if s.Port < 1 || s.Port > 65535 {
		f.add("smtp.port", "must be 1 to 65535")
	}
	if s.Auth != nil {
		f.auth(*s.Auth)
	}
	if s.TLS != nil {
		f.tls(*s.TLS, s.Secure)
	}
}

func (f *faults) auth(auth api.SMTPAuth) {
	f.text("smtp.auth.user", auth.User, 256)
	f.text("smtp.auth.accessToken", auth.AccessToken, 16384)
	if len(auth.Pass) > 4096 || strings.ContainsRune(auth.Pass, 0) {
		f.add("smtp.auth.pass", "must not be longer than 4096 bytes or contain a NUL")
	}
	switch hasSecret := auth.Pass != "" || auth.AccessToken != ""; {
	case auth.User == "" && hasSecret:
		f.add("smtp.auth.user", "is required with a password or access token")
	case auth.User != "" && !hasSecret:
		f.add("smtp.auth.pass", "is required (or accessToken); send ****** to keep the stored one")
	}
}

func (f *faults) tls(t api.SMTPTLS, secure bool) {
	if !slices.Contains([]string{"", "TLSv1.2", "TLSv1.3"}, t.MinVersion) {
		f.add("smtp.tls.minVersion", "must be TLSv1.2 or TLSv1.3")
	}
	switch {
	case !slices.Contains([]string{"", "required", "opportunistic", "off"}, t.StartTLS):
		f.add("smtp.tls.starttls", "must be required, opportunistic or off")
	case t.StartTLS != "" && secure:
		f.add("smtp.tls.starttls", "must be absent when smtp.secure is true")
	}
}

// webhooks checks the URL that gets the account's events. It is shown in answers, so it must not carry a password.
func (f *faults) webhooks(s string) {
	if s == "" {
		return
	}
	u, err := url.Parse(s)
	switch {
	case len(s) > 2048:
		f.add("webhooks", "must not be longer than 2048 characters")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "":
		f.add("webhooks", "must be an http or https URL")
	case u.User != nil:
		f.add("webhooks", "must not contain a user or password")
	}
}

func (f *faults) text(key, s string, limit int) {
	switch {
	case utf8.RuneCountInString(s) > limit:
		f.add(key, "must not be longer than %d characters", limit)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl):
		f.add(key, "must not contain control characters")
	}
}

func (f *faults) limit(key string, n, most int) {
	if n < 0 || n > most {
		f.add(key, "must be 1 to %d", most)
	}
}

// validHost reports whether s is a host name (RFC 1123; with underscores, which are used) or an IP address.
func validHost(s string) bool {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Zone() == ""
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if !labelPattern.MatchString(label) {
			return false
		}
	}
	return true
}

// addressLiteral reports whether s is an address as EHLO writes it (RFC 5321 section 4.1.3): [192.0.2.1] or [IPv6:2001:db8::1].
func addressLiteral(s string) bool {
	s, ok := strings.CutPrefix(s, "[")
	s, closed := strings.CutSuffix(s, "]")
	s, six := strings.CutPrefix(s, "IPv6:")
	addr, err := netip.ParseAddr(s)
	return ok && closed && err == nil && addr.Is6() == six && addr.Zone() == ""
}
