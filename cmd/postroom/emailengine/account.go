package emailengine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// object is a JSON object that may be absent, null or false.
type object[T any] struct{ value *T }

// UnmarshalJSON reads the object. Anything but an object is as if it were absent.
func (o *object[T]) UnmarshalJSON(raw []byte) error {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	o.value = new(T)
	return json.Unmarshal(raw, o.value)
}

// account is an account as EmailEngine has it.
type account struct {
	Account  string             `json:"account"`
	Name     string             `json:"name"`
	Email    string             `json:"email"`
	SMTP     object[server]     `json:"smtp"`
	IMAP     object[struct{}]   `json:"imap"`
	OAuth2   object[oauth2]     `json:"oauth2"`
	Webhooks string             `json:"webhooks"`
	Headers  []api.CustomHeader `json:"webhooksCustomHeaders"`
	Proxy    string             `json:"proxy"`
	EHLOName string             `json:"smtpEhloName"`
	Locale   string             `json:"locale"`
	TZ       string             `json:"tz"`
}

// oauth2 is the login of an account through an app or another account.
type oauth2 struct {
	Provider string           `json:"provider"`
	Auth     object[struct{}] `json:"auth"`
}

// server is a relay as EmailEngine has it, with the options of nodemailer.
type server struct {
	Host       string         `json:"host"`
	Port       json.Number    `json:"port"`
	Secure     *bool          `json:"secure"`
	IgnoreTLS  bool           `json:"ignoreTLS"`
	RequireTLS bool           `json:"requireTLS"`
	AuthServer bool           `json:"useAuthServer"`
	Auth       object[login]  `json:"auth"`
	TLS        map[string]any `json:"tls"`
}

// login is the credentials of a relay.
type login struct {
	User        string `json:"user"`
	Pass        any    `json:"pass"`        // a text, or false
	AccessToken any    `json:"accessToken"` // a text, or false
}

// gateway is a gateway as EmailEngine has it.
type gateway struct {
	Gateway string      `json:"gateway"`
	Name    string      `json:"name"`
	Host    string      `json:"host"`
	Port    json.Number `json:"port"`
	Secure  *bool       `json:"secure"`
	User    string      `json:"user"`
	Pass    any         `json:"pass"`
}

// validID is what ids of accounts, gateways and templates look like in Postroom.
var validID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._@+-]*$`)

const badID = "ids have only letters, digits and . _ @ + - in Postroom; add it under another one"

// relays are the settings of all relays of an EmailEngine.
type relays struct {
	opener
	anyCertificate bool   // ignoreMailCertErrors
	proxy          string // where an account has none
}

// account returns an account in Postroom's words. The error says why it can't be taken.
func (r relays) account(a account) (Part[api.Account], error) {
	var none Part[api.Account]
	smtp := a.SMTP.value
	switch {
	case !validID.MatchString(a.Account):
		return none, fmt.Errorf("%s", badID)
	case a.OAuth2.value != nil && (a.OAuth2.value.Provider != "" || a.OAuth2.value.Auth.value != nil):
		return none, fmt.Errorf("it logs in through an OAuth2 app of EmailEngine; add it with the flags --oauth2-… of postroom account add")
	case smtp == nil && a.IMAP.value != nil:
		return none, fmt.Errorf("it has a mailbox (imap), but no relay (smtp)")
	case smtp == nil:
		return none, fmt.Errorf("it has no relay (smtp)")
	case smtp.AuthServer:
		return none, fmt.Errorf("its password comes from an authentication server (useAuthServer); add it with its password")
	}
	p := Part[api.Account]{Value: api.Account{Account: a.Account, Name: a.Name, Email: a.Email, Locale: a.Locale,
		TZ: a.TZ, SMTPEhloName: a.EHLOName}}
	relay, err := r.server(smtp, &p.Lacks)
	if err != nil {
		return none, err
	}
	auth := cmp.Or(smtp.Auth.value, &login{})
	relay.Auth, err = r.login(auth, &p.Lacks, "postroom account update "+a.Account)
	if err != nil {
		return none, err
	}
	p.Value.SMTP = relay
	p.Value.Proxy = shown("proxy", cmp.Or(a.Proxy, r.proxy), &p.Lacks)
	p.Value.Webhooks = webhooks(a.Webhooks, &p.Lacks)
	if len(a.Headers) > 0 {
		p.Lacks = append(p.Lacks, "webhooksCustomHeaders: accounts have none in Postroom; make a webhook endpoint for it")
	}
	return p, nil
}

// gateway returns a gateway in Postroom's words. The error says why it can't be taken.
func (r relays) gateway(g gateway) (Part[api.Gateway], error) {
	var p Part[api.Gateway]
	if !validID.MatchString(g.Gateway) {
		return p, fmt.Errorf("%s", badID)
	}
	relay, err := r.server(&server{Host: g.Host, Port: g.Port, Secure: g.Secure}, &p.Lacks)
	if err != nil {
		return p, err
	}
	auth, err := r.login(&login{User: g.User, Pass: g.Pass}, &p.Lacks, "postroom gateway update "+g.Gateway)
	if err != nil {
		return p, err
	}
	p.Value = api.Gateway{Gateway: g.Gateway, Name: g.Name, Host: relay.Host, Port: relay.Port,
		Secure: relay.Secure, TLS: relay.TLS, Proxy: shown("proxyUrl", r.proxy, &p.Lacks)}
	if auth != nil {
		p.Value.User, p.Value.Pass = auth.User, auth.Pass
	}
	return p, nil
}

// shown returns a URL, or nothing if EmailEngine's API masks what is in it.
func shown(name, value string, lacks *[]string) string {
	if hidden(value) {
		*lacks = append(*lacks, name+": EmailEngine's API does not show the password in it; set it yourself")
		return ""
	}
	return value
}

// webhooks returns the address of webhooks, or nothing if it has a user or password.
func webhooks(address string, lacks *[]string) string {
	if u, err := url.Parse(address); err != nil || u.User != nil {
		*lacks = append(*lacks, "webhooks: an address has no user and no password in Postroom; set another one")
		return ""
	}
	return address
}

// login returns the credentials; nil: none. Those that EmailEngine does not show lack, and so does the user:
// Postroom takes no user without a password. update is the command that sets them later.
func (r relays) login(l *login, lacks *[]string, update string) (*api.SMTPAuth, error) {
	pass, _ := l.Pass.(string)
	token, _ := l.AccessToken.(string)
	switch {
	case l.User == "" && pass == "" && token == "":
		return nil, nil
	case pass == masked || token == masked:
		*lacks = append(*lacks, fmt.Sprintf("its password, which EmailEngine's API does not show: %s --user %s --pass -", update, l.User))
		return nil, nil
	}
	var err error
	if pass, err = r.open(pass); err != nil {
		return nil, fmt.Errorf("its password: %w", err)
	}
	if token, err = r.open(token); err != nil {
		return nil, fmt.Errorf("its access token: %w", err)
	}
	if pass == "" && token == "" {
		return nil, fmt.Errorf("it has a user, but no password")
	}
	return &api.SMTPAuth{User: l.User, Pass: pass, AccessToken: token}, nil
}

// server returns the relay without its credentials. Nodemailer uses TLS from the first byte if secure is
// true, or absent with port 465. Else it uses STARTTLS where it is offered, never with ignoreTLS, always with
// requireTLS. So does Postroom, but it sends a password only over TLS, or to this machine.
func (r relays) server(s *server, lacks *[]string) (*api.SMTPServer, error) {
	port, err := s.Port.Int64()
	if s.Host == "" || err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("its relay has no host or no port: %q, %q", s.Host, s.Port)
	}
	out := &api.SMTPServer{Host: s.Host, Port: int(port), Secure: s.Secure == nil && port == 465}
	if s.Secure != nil {
		out.Secure = *s.Secure
	}
	t := r.tls(s.TLS, lacks)
	switch {
	case out.Secure:
	case s.RequireTLS:
		t.StartTLS = "required"
	case s.IgnoreTLS && s.Auth.value != nil && !onThisMachine(s.Host):
		*lacks = append(*lacks, "ignoreTLS: a password is not sent without TLS; the relay must offer STARTTLS")
	case s.IgnoreTLS:
		t.StartTLS = "off"
	}
	if t != (api.SMTPTLS{}) {
		out.TLS = &t
	}
	return out, nil
}

// tls returns the TLS options that Postroom has. A minimum below TLS 1.2 is no option, since
// Postroom never uses such versions.
func (r relays) tls(options map[string]any, lacks *[]string) (t api.SMTPTLS) {
	no := false
	if options["rejectUnauthorized"] == false || r.anyCertificate {
		t.RejectUnauthorized = &no
	}
	if options["minVersion"] == "TLSv1.3" {
		t.MinVersion = "TLSv1.3"
	}
	t.CA = authorities(options["ca"])
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch name {
		case "rejectUnauthorized", "minVersion", "partial":
		case "ca":
			if t.CA == "" {
				*lacks = append(*lacks, "tls.ca: it is no text in PEM")
			}
		default:
			*lacks = append(*lacks, "tls."+name+": Postroom has no such option")
		}
	}
	return t
}

// authorities returns certificates: a text, or a list of texts.
func authorities(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		var all []string
		for _, one := range v {
			if text, ok := one.(string); ok {
				all = append(all, text)
			}
		}
		return strings.Join(all, "\n")
	}
	return ""
}

func onThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.IsLoopback()
}
