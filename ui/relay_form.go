package ui

import (
	"net/url"

	"github.com/postroom/postroom/api"
)

// presetNames are the choices of a preset.
var presetNames = []string{"", "gmail", "office365", "ses", "sendgrid", "mailgun", "postmark", "icloud",
	"generic"}

// keptSecret is the hint of a secret.
const keptSecret = "Never shown. Empty: the stored one stays, unless the host, port or TLS changes."

// relayGroups are the fields of a relay. Names begin with at, those of the login with login.
func relayGroups(at, login string) []formGroup {
	return []formGroup{
		{Legend: "Relay", Fields: []formField{
			{Name: at + "preset", Label: "Preset", Kind: "choice", Choices: presetNames, Placeholder: "none",
				Hint: "A provider whose host, port, TLS and limits stand in for those left empty."},
			{Name: at + "host", Label: "Host", Placeholder: "smtp.example.com"},
			{Name: at + "port", Label: "Port", Kind: "number", Placeholder: "587"},
			{Name: at + "secure", Label: "TLS from the first byte (usually port 465)", Kind: "check"},
		}},
		{Legend: "Login", Fields: []formField{
			{Name: login + "user", Label: "User"},
			{Name: login + "pass", Label: "Password", Kind: "secret", Most: 4096, Hint: keptSecret},
		}},
		{Legend: "OAuth 2.0, in place of user and password", Folded: true, Fields: []formField{
			{Name: "oauth2.provider", Label: "Provider", Kind: "choice", Choices: []string{"", "gmail", "office365"},
				Placeholder: "none"},
			{Name: "oauth2.tokenUrl", Label: "URL for tokens", Most: 2048, Placeholder: "that of the provider"},
			{Name: "oauth2.user", Label: "Mailbox"},
			{Name: "oauth2.clientId", Label: "Client id", Most: 1024},
			{Name: "oauth2.clientSecret", Label: "Client secret", Kind: "secret", Most: 4096, Hint: keptSecret},
			{Name: "oauth2.refreshToken", Label: "Refresh token", Kind: "secret", Most: 16384, Hint: keptSecret},
			{Name: "oauth2.scope", Label: "Scope", Most: 1024},
		}},
		{Legend: "TLS", Folded: true, Fields: []formField{
			{Name: at + "tls.starttls", Label: "STARTTLS", Kind: "choice",
				Choices: []string{"", "required", "opportunistic", "off"}, Placeholder: "required with a login"},
			{Name: at + "tls.minVersion", Label: "Lowest version", Kind: "choice",
				Choices: []string{"", "TLSv1.2", "TLSv1.3"}, Placeholder: "TLSv1.2"},
			{Name: at + "tls.rejectUnauthorized", Label: "Accept any certificate", Kind: "check",
				Hint: "Then anybody on the way can read the mail and the password."},
			{Name: at + "tls.pinSha256", Label: "Pinned keys (base64 SHA-256, spaces between)", Most: 1024},
			{Name: at + "tls.ca", Label: "Authorities (PEM) in place of the system’s", Kind: "lines", Most: 65536},
		}},
		{Legend: "Limits", Folded: true, Fields: limitFields()},
		{Legend: "Way to the relay", Folded: true, Fields: []formField{
			{Name: "proxy", Label: "Proxy", Most: 2048, Placeholder: "socks5://proxy.example.com:1080",
				Hint: "Its password is shown as ******, which keeps it."},
			{Name: "localAddress", Label: "Connect from this IP address", Most: 64},
			{Name: "smtpEhloName", Label: "Name in EHLO", Placeholder: "that of the machine"},
		}},
	}
}

// relaySettings are those of a relay, of a gateway or an account.
type relaySettings struct {
	SMTP   *api.SMTPServer // nil: none
	OAuth2 *api.OAuth2     // nil: none
}

// relay reads the fields of a relay. Secrets that were left empty are those of old.
func (r *formReader) relay(at, login string, old relaySettings) relaySettings {
	auth := api.SMTPAuth{User: r.text(login + "user")}
	was := api.SMTPAuth{}
	if old.SMTP != nil && old.SMTP.Auth != nil {
		was = *old.SMTP.Auth
	}
	if auth.User == "" { // the password goes with its user
		was = api.SMTPAuth{}
	}
	auth.Pass = r.secret(login+"pass", was.Pass)
	if auth.Pass == was.Pass {
		auth.AccessToken = was.AccessToken
	}
	tls := api.SMTPTLS{StartTLS: r.text(at + "tls.starttls"), MinVersion: r.text(at + "tls.minVersion"),
		PinSHA256: r.text(at + "tls.pinSha256"), CA: r.text(at + "tls.ca")}
	if r.on(at + "tls.rejectUnauthorized") {
		tls.RejectUnauthorized = new(false)
	}
	server := api.SMTPServer{Preset: r.text(at + "preset"), Host: r.text(at + "host"),
		Port: r.whole(at + "port"), Secure: r.on(at + "secure"), Auth: none(auth), TLS: none(tls)}
	return relaySettings{none(server), r.oauth2(old.OAuth2)}
}

func (r *formReader) oauth2(old *api.OAuth2) *api.OAuth2 {
	o := api.OAuth2{Provider: r.text("oauth2.provider"), TokenURL: r.text("oauth2.tokenUrl"),
		ClientID: r.text("oauth2.clientId"), Scope: r.text("oauth2.scope"), User: r.text("oauth2.user"),
		ClientSecret: r.Get("oauth2.clientSecret"), RefreshToken: r.Get("oauth2.refreshToken")}
	if o != (api.OAuth2{}) && old != nil {
		o.ClientSecret = r.secret("oauth2.clientSecret", old.ClientSecret)
		o.RefreshToken = r.secret("oauth2.refreshToken", old.RefreshToken)
	}
	return none(o)
}

// setRelay writes a relay into a form, without secrets.
func setRelay(f url.Values, at, login string, s relaySettings) {
	if s.SMTP != nil {
		f.Set(at+"preset", s.SMTP.Preset)
		f.Set(at+"host", s.SMTP.Host)
		setNumber(f, at+"port", float64(s.SMTP.Port))
		setOn(f, at+"secure", s.SMTP.Secure)
		if s.SMTP.Auth != nil {
			f.Set(login+"user", s.SMTP.Auth.User)
		}
		if t := s.SMTP.TLS; t != nil {
			f.Set(at+"tls.starttls", t.StartTLS)
			f.Set(at+"tls.minVersion", t.MinVersion)
			f.Set(at+"tls.pinSha256", t.PinSHA256)
			f.Set(at+"tls.ca", t.CA)
			setOn(f, at+"tls.rejectUnauthorized", t.RejectUnauthorized != nil && !*t.RejectUnauthorized)
		}
	}
	if o := s.OAuth2; o != nil {
		f.Set("oauth2.provider", o.Provider)
		f.Set("oauth2.tokenUrl", o.TokenURL)
		f.Set("oauth2.user", o.User)
		f.Set("oauth2.clientId", o.ClientID)
		f.Set("oauth2.scope", o.Scope)
	}
}
