package main

import (
	"cmp"
	"os"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

// relayFlags describe a relay: an account's own, or a gateway. A pointer to an empty value removes the old
// one.
type relayFlags struct {
	SMTP          string   `name:"smtp" group:"relay" placeholder:"URL" help:"Relay, such as smtp://user:password@smtp.example.com:587, or smtps://. - reads it from standard input, env:NAME from the environment."`
	Preset        *string  `group:"relay" placeholder:"NAME" help:"Provider that fills in host, port, TLS and limits: gmail, office365, ses, sendgrid, mailgun, postmark, icloud or generic."`
	User          string   `group:"relay" placeholder:"NAME" help:"User name, if the URL has none."`
	Pass          string   `group:"relay" placeholder:"FROM" help:"Source of the password: a file, env:NAME, or - for standard input."`
	CA            *string  `name:"ca" group:"relay" placeholder:"FILE" help:"Certificates (PEM) of the authorities to trust, instead of the system's."`
	Pin           *string  `group:"relay" placeholder:"HASH" help:"Base64 SHA-256 of the relay's public key; several separated by spaces."`
	Proxy         *string  `group:"relay" placeholder:"URL" help:"Connect through this proxy: http, https or socks5. - and env:NAME as for --smtp."`
	LocalAddress  *string  `group:"relay" placeholder:"IP" help:"Address to connect from."`
	EhloName      *string  `group:"relay" placeholder:"NAME" help:"Name in EHLO. Defaults to the machine's name."`
	PerSecond     *float64 `group:"limits" placeholder:"N" help:"Maximum recipients per second. Use 0 for the preset's limit, or no limit."`
	PerMinute     *float64 `group:"limits" placeholder:"N" help:"Maximum recipients per minute."`
	PerDay        *float64 `group:"limits" placeholder:"N" help:"Maximum recipients per day."`
	Burst         *int     `group:"limits" placeholder:"N" help:"Burst after a pause, for --per-second. Defaults to one second's worth."`
	Connections   *int     `group:"limits" placeholder:"N" help:"Maximum simultaneous connections of all processes together. Defaults to 10 per process."`
	PerConnection *int     `group:"limits" placeholder:"N" help:"Maximum messages per connection. Default: 100."`

	OAuth2 oauthFlags `embed:"" prefix:"oauth2-" group:"oauth2"`
}

// oauthFlags are the source of access tokens.
type oauthFlags struct {
	Provider     string `placeholder:"NAME" help:"gmail or office365. Defaults to the provider of --preset."`
	TokenURL     string `name:"token-url" placeholder:"URL" help:"Token endpoint of another provider."`
	ClientID     string `placeholder:"ID" help:"Client ID of your application."`
	ClientSecret string `placeholder:"FROM" help:"Source of the client secret: a file, env:NAME, or - for standard input."`
	RefreshToken string `placeholder:"FROM" help:"Source of the refresh token."`
	Scope        string `placeholder:"SCOPE" help:"Scope to request. Defaults to sending email."`
	User         string `placeholder:"MAILBOX" help:"Mailbox."`
}

// relaySettings are the settings that accounts and gateways share. SMTP is nil without a relay.
type relaySettings struct {
	api.VerifyRequest
	limits *api.Limits
}

// over returns the settings changed by the flags.
func (f relayFlags) over(s relaySettings, con *console) (relaySettings, error) {
	var err error
	if f.SMTP != "" {
		if s.SMTP, err = readRelay(f.SMTP, s.SMTP, con); err != nil {
			return s, err
		}
		if s.SMTP.Auth != nil {
			s.OAuth2 = nil
		}
	}
	if s, err = f.login(s, con); err != nil {
		return s, err
	}
	if s, err = f.tls(s); err != nil {
		return s, err
	}
	if f.Preset != nil {
		s.SMTP = relayOf(s)
		s.SMTP.Preset = *f.Preset
	}
	if f.Proxy != nil {
		if s.Proxy, err = con.secret("--proxy", *f.Proxy); err != nil {
			return s, err
		}
	}
	api.Set(&s.LocalAddress, f.LocalAddress)
	api.Set(&s.SMTPEhloName, f.EhloName)
	s.limits = f.bound(s.limits)
	return s, nil
}

// relayOf is a copy of the relay to change, or a new one.
func relayOf(s relaySettings) *api.SMTPServer {
	relay := *cmp.Or(s.SMTP, &api.SMTPServer{})
	return &relay
}

// login changes user and password, or OAuth 2.0. Either replaces the other.
func (f relayFlags) login(s relaySettings, con *console) (relaySettings, error) {
	if f.OAuth2 != (oauthFlags{}) {
		o, err := f.OAuth2.over(s.OAuth2, con)
		s.OAuth2, s.SMTP = o, relayOf(s)
		s.SMTP.Auth = nil
		return s, err
	}
	if f.User == "" && f.Pass == "" {
		return s, nil
	}
	s.OAuth2, s.SMTP = nil, relayOf(s)
	auth := *cmp.Or(s.SMTP.Auth, &api.SMTPAuth{})
	auth.User = cmp.Or(f.User, auth.User)
	if f.Pass != "" {
		pass, err := con.secretFrom("--pass", f.Pass)
		if err != nil {
			return s, err
		}
		auth.Pass, auth.AccessToken = pass, ""
	}
	s.SMTP.Auth = &auth
	return s, nil
}

func (f oauthFlags) over(old *api.OAuth2, con *console) (*api.OAuth2, error) {
	o := *cmp.Or(old, &api.OAuth2{})
	o.Provider, o.TokenURL = cmp.Or(f.Provider, o.Provider), cmp.Or(f.TokenURL, o.TokenURL)
	o.ClientID, o.Scope, o.User = cmp.Or(f.ClientID, o.ClientID), cmp.Or(f.Scope, o.Scope), cmp.Or(f.User,
		o.User)
	var err error
	if f.ClientSecret != "" {
		if o.ClientSecret, err = con.secretFrom("--oauth2-client-secret", f.ClientSecret); err != nil {
			return nil, err
		}
	}
	if f.RefreshToken != "" {
		o.RefreshToken, err = con.secretFrom("--oauth2-refresh-token", f.RefreshToken)
	}
	return &o, err
}

// tls changes the trusted certificates.
func (f relayFlags) tls(s relaySettings) (relaySettings, error) {
	if f.CA == nil && f.Pin == nil {
		return s, nil
	}
	s.SMTP = relayOf(s)
	t := *cmp.Or(s.SMTP.TLS, &api.SMTPTLS{})
	api.Set(&t.PinSHA256, f.Pin)
	if t.PinSHA256 != "" && t.StartTLS == "opportunistic" {
		t.StartTLS = "required" // without TLS the pinned key would protect nothing
	}
	if f.CA != nil {
		t.CA = ""
		if *f.CA != "" {
			text, err := os.ReadFile(*f.CA)
			if err != nil {
				return s, usage("--ca: %v", err)
			}
			t.CA = string(text)
		}
	}
	s.SMTP.TLS = &t
	return s, nil
}

// bound returns the limits changed by the flags; nil: none.
func (f relayFlags) bound(old *api.Limits) *api.Limits {
	l := *cmp.Or(old, &api.Limits{})
	api.Patch(&l, f)
	if old == nil && l == (api.Limits{}) {
		return nil
	}
	return &l
}

// readRelay parses the URL of a relay. Settings that a URL cannot have stay.
func readRelay(text string, old *api.SMTPServer, con *console) (*api.SMTPServer, error) {
	text, err := con.secret("--smtp", text)
	if err != nil {
		return nil, err
	}
	parsed, err := config.ParseRelay(text)
	if err != nil {
		return nil, usage("--smtp %v", err)
	}
	relay := app.SMTPServer(parsed)
	if old == nil {
		return relay, nil
	}
	relay.Preset = old.Preset
	relay.Auth = cmp.Or(relay.Auth, old.Auth)
	if old.TLS != nil {
		relay.TLS.CA, relay.TLS.PinSHA256, relay.TLS.MinVersion = old.TLS.CA, old.TLS.PinSHA256, old.TLS.MinVersion
	}
	return relay, nil
}

// secret returns the value of a flag that may be a secret: as it is, - for standard input, which leaves no
// trace in the shell's history, or env:NAME.
func (c *console) secret(flag, value string) (string, error) {
	if value == "-" || strings.HasPrefix(value, "env:") {
		return c.secretFrom(flag, value)
	}
	return value, nil
}

// secretFrom reads a secret from the source in a flag: a file, env:NAME, or - for standard input. It drops
// one newline at the end.
func (c *console) secretFrom(flag, from string) (string, error) {
	if name, ok := strings.CutPrefix(from, "env:"); ok {
		value := os.Getenv(name)
		if value == "" {
			return "", usage("%s: the environment has no %s", flag, name)
		}
		return value, nil
	}
	text, err := c.read("@"+from, from == "-")
	if err != nil {
		return "", usage("%s: %v", flag, err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if value == "" {
		return "", usage("%s: nothing is there", flag)
	}
	return value, nil
}
