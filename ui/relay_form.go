package ui

import (
	"cmp"
	"net/url"

	"github.com/postroom/postroom/api"
)

var presetNames = []string{"", "gmail", "office365", "ses", "sendgrid", "mailgun", "postmark", "icloud",
	"generic"}

const keptSecret = "Leave empty to keep the stored value. If you change the host, port or TLS, enter it again."

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
		{Legend: "OAuth 2.0 instead of user and password", Folded: true, Fields: []formField{
			{Name: "oauth2.provider", Label: "Provider", Kind: "choice", Choices: []string{"", "gmail", "office365"},
				Placeholder: "none"},
			{Name: "oauth2.tokenUrl", Label: "URL for tokens", Most: 2048, Placeholder: "the provider’s default"},
			{Name: "oauth2.user", Label: "Mailbox"},
			{Name: "oauth2.clientId", Label: "Client ID", Most: 1024},
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
				Hint: "Dangerous: anyone in between can read messages and the password."},
			{Name: at + "tls.pinSha256", Label: "Pinned keys (base64 SHA-256, separated by spaces)", Most: 1024},
			{Name: at + "tls.ca", Label: "Authorities (PEM) instead of the system’s", Kind: "lines", Most: 65536},
		}},
		{Legend: "Limits", Folded: true, Fields: limitFields()},
		{Legend: "Connection to the relay", Folded: true, Fields: []formField{
			{Name: "proxy", Label: "Proxy", Most: 2048, Placeholder: "socks5://proxy.example.com:1080",
				Hint: "****** stands for the stored password and keeps it."},
			{Name: "localAddress", Label: "Connect from this IP address", Most: 64},
			{Name: "smtpEhloName", Label: "Name in EHLO", Placeholder: "the machine’s name"},
		}},
	}
}

// relaySettings are those of a relay, of a gateway or an account.
type relaySettings struct {
	SMTP   *api.SMTPServer // nil: none
	OAuth2 *api.OAuth2     // nil: none
}

// relay completes what was taken of a relay. Secrets that were left empty are those of old. at and login
// begin the names, as of relayGroups.
func (r *formReader) relay(at, login string, taken, old relaySettings) relaySettings {
	server := *cmp.Or(taken.SMTP, &api.SMTPServer{})
	auth := api.SMTPAuth{User: r.text(login + "user")}
	was := api.SMTPAuth{}
	if auth.User != "" && old.SMTP != nil && old.SMTP.Auth != nil { // the password goes with its user
		was = *old.SMTP.Auth
	}
	if auth.Pass = r.secret(login+"pass", was.Pass); auth.Pass == was.Pass {
		auth.AccessToken = was.AccessToken
	}
	server.Auth = none(auth)
	if r.on(at + "tls.rejectUnauthorized") {
		server.TLS = cmp.Or(server.TLS, &api.SMTPTLS{})
		server.TLS.RejectUnauthorized = new(false)
	}
	if o, was := taken.OAuth2, *cmp.Or(old.OAuth2, &api.OAuth2{}); o != nil {
		o.ClientSecret = r.secret("oauth2.clientSecret", was.ClientSecret)
		o.RefreshToken = r.secret("oauth2.refreshToken", was.RefreshToken)
	}
	return relaySettings{none(server), taken.OAuth2}
}

// setVerified writes whether any certificate is accepted, whose box says the opposite of the field.
func setVerified(f url.Values, at string, tls *api.SMTPTLS) {
	f.Del(at + "tls.rejectUnauthorized")
	setOn(f, at+"tls.rejectUnauthorized", tls != nil && !*cmp.Or(tls.RejectUnauthorized, new(true)))
}
