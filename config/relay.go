package config

import (
	"errors"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Relay is the relay of the default account, parsed from its URL. The zero value means that there is none.
type Relay struct {
	Host     string
	Port     int    // 465 with Implicit; otherwise 587 with credentials and 25 without, unless the URL names one
	Implicit bool   // TLS from the first byte (RFC 8314): smtps://, or port 465
	StartTLS string // required, opportunistic or off; empty with Implicit
	User     string // empty: no login
	Pass     Secret
	Insecure bool // accept any certificate
}

// The meanings of ?starttls= in a relay URL.
const (
	StartTLSRequired = "required" // no mail without encryption; the default with credentials
	// encrypted where the relay offers it; the default without credentials
	StartTLSOpportunistic = "opportunistic"
	StartTLSOff           = "off" // never encrypted
)

const relayExample = "write one such as smtp://user:password@smtp.example.com:587 or smtps://smtp.example.com"

// ParseRelay parses a relay URL in the form of the setting smtp, for commands. No error quotes the URL,
// because it may hold a password.
func ParseRelay(text string) (Relay, error) {
	r, fault := parseRelay(strings.TrimSpace(text))
	if fault != "" {
		return Relay{}, errors.New(fault)
	}
	return r, nil
}

// parseRelay parses a relay URL. The URL parser's own errors quote the URL with its password, so they are
// never returned.
func parseRelay(text string) (r Relay, fault string) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return r, "is not a URL; " + relayExample +
			"; in user and password write / as %2F, # as %23, ? as %3F, @ as %40 and % as %25"
	case u.Scheme != "smtp" && u.Scheme != "smtps":
		return r, "is not a relay URL: it must start with smtp:// or smtps://; " + relayExample
	case u.Hostname() == "" || strings.ContainsFunc(u.Hostname(), func(c rune) bool {
		return c <= ' ' ||
			c == 0x7f
	}):
		return r, "names no host; " + relayExample
	case u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return r, "has extra text after its host; in user and password write / as %2F and # as %23"
	}
	r = Relay{Host: u.Hostname(), Implicit: u.Scheme == "smtps", User: u.User.Username()}
	pass, _ := u.User.Password()
	r.Pass = Secret(pass)
	switch {
	case u.User != nil && (r.User == "" || pass == ""):
		return r, "has a user or a password, but not both; write user:password@ before the host, or nothing"
	case strings.ContainsRune(r.User+pass, 0):
		return r, "has a NUL in its credentials, which SMTP can't carry"
	}
	if fault := r.options(u.RawQuery); fault != "" {
		return r, fault
	}
	return r.port(u.Port())
}

// options parses the query of the URL.
func (r *Relay) options(query string) (fault string) {
	params, err := url.ParseQuery(query)
	if err != nil {
		return "has options that can't be read; in user and password write ? as %3F"
	}
	for name, values := range params {
		value := values[0]
		switch {
		case len(values) > 1:
			return "has the option " + optionName(name) + " twice"
		case name == "starttls" && r.Implicit:
			return "has the option starttls, but smtps:// is encrypted from the first byte; remove it, or write smtp://"
		case name == "starttls":
			if !slices.Contains([]string{StartTLSRequired, StartTLSOpportunistic, StartTLSOff}, value) {
				return "has an unknown starttls; write starttls=required, opportunistic or off"
			}
			r.StartTLS = value
		case name == "insecure":
			if r.Insecure, err = strconv.ParseBool(value); err != nil {
				return "has an unknown insecure; write insecure=true to accept any certificate"
			}
		default:
			return "has an unknown option; there are starttls=required|opportunistic|off and insecure=true. In user and password write ? as %3F"
		}
	}
	return ""
}

// optionName returns the name of a known option only: the text after an unescaped ? may be part of a
// password.
func optionName(name string) string {
	if name == "starttls" || name == "insecure" {
		return name
	}
	return "after ?"
}

// port determines the port and, from it, how the connection is protected.
func (r Relay) port(text string) (Relay, string) {
	switch port, err := strconv.Atoi(text); {
	case text == "" && r.Implicit:
		r.Port = 465
	case text == "" && r.User != "":
		r.Port = 587
	case text == "":
		r.Port = 25
	case err != nil || port < 1 || port > 65535:
		return r, "has no valid port; write a number from 1 to 65535 after the host"
	default:
		r.Port = port
	}
	if r.Port == 465 && r.StartTLS == "" {
		r.Implicit = true
	}
	switch {
	case r.Implicit:
	case r.StartTLS == "" && r.User != "":
		r.StartTLS = StartTLSRequired
	case r.StartTLS == "":
		r.StartTLS = StartTLSOpportunistic
	case r.StartTLS != StartTLSRequired && r.User != "" && !loopback(r.Host):
		return r, "would send the password unencrypted; remove starttls=" + r.StartTLS + ", or the credentials"
	}
	return r, ""
}

// loopback reports whether a host is this machine, so that a password in clear crosses no network.
func loopback(host string) bool {
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}

// Mailbox is a sender: an address and an optional name. The zero value means that there is none.
type Mailbox struct {
	Name    string
	Address string
}

// parseMailbox parses "Example Shop <shop@example.com>" or a bare address.
func parseMailbox(text string) (m Mailbox, fault string) {
	const example = "; write one such as shop@example.com or Example Shop <shop@example.com>"
	a, err := mail.ParseAddress(text)
	if err != nil {
		return m, "is not an address" + example
	}
	at := strings.LastIndexByte(a.Address, '@')
	domain := a.Address[at+1:]
	switch {
	case len(a.Address) > 254 || at > 64: // RFC 5321 section 4.5.3.1
		return m, "is too long for an address (at most 64 characters before the @, 254 in total)" + example
	case domain == "" || strings.HasPrefix(domain, "["):
		return m, "has no domain name after the @" + example
	case strings.ContainsFunc(a.Name+a.Address, unicode.IsControl), strings.ContainsAny(a.Name, "\u2028\u2029"):
		return m, "contains a control character" + example
	}
	return Mailbox(*a), ""
}
