package oauth

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
)

// Client is an OAuth client of an owner. Its secrets are in clear, and must be sealed when it is stored. It
// is printed and logged without them.
type Client struct {
	// Provider sets an empty TokenURL or Scope: "gmail" or "office365". If empty, TokenURL is required.
	Provider string
	// TokenURL is the token endpoint: https, or http on the loopback interface. Defaults to the provider's.
	TokenURL string
	// ClientID and ClientSecret are of the application's registration with the provider. ClientSecret may be
	// empty for a public client.
	ClientID, ClientSecret string
	// RefreshToken is of the owner's consent.
	RefreshToken string
	// Scope is requested with each token, several separated by spaces. Defaults to the provider's, or to none,
	// which means the consent's scope.
	Scope string
}

// provider is a token server with a name.
type provider struct{ tokenURL, scope string }

// providerNamed returns a provider. Microsoft's server gives tokens for one service at a time, so the scope
// is required. Its tenant "common" serves all organisations; one with its own application sets its TokenURL.
func providerNamed(name string) (provider, bool) {
	switch name {
	case "gmail":
		return provider{"https://oauth2.googleapis.com/token", "https://mail.google.com/"}, true
	case "office365":
		return provider{
			"https://login.microsoftonline.com/common/oauth2/v2.0/token",
			"https://outlook.office.com/SMTP.Send offline_access",
		}, true
	case "":
		return provider{}, true
	}
	return provider{}, false
}

// complete returns the client with the values of its provider, or an error if it can't work.
func (c Client) complete() (Client, error) {
	p, known := providerNamed(c.Provider)
	if !known {
		return c, fmt.Errorf("the provider %q is not known", c.Provider)
	}
	c.TokenURL = cmp.Or(c.TokenURL, p.tokenURL)
	c.Scope = cmp.Or(c.Scope, p.scope)
	if c.ClientID == "" || c.RefreshToken == "" {
		return c, errors.New("a client id and a refresh token are needed")
	}
	return c, CheckTokenURL(c.TokenURL)
}

// CheckTokenURL returns an error if the URL of a token endpoint is invalid. Client secrets and refresh tokens
// are sent there, so it must be https; http is for tests and for proxies on the loopback interface. The text
// of the error follows the name of the field.
func CheckTokenURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("must be an https URL")
	case u.User != nil || u.Fragment != "":
		return errors.New("must not hold a user, a password or a fragment")
	case u.Scheme == "https" || u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return errors.New("must begin with https://: secrets are sent there")
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// grant returns a hash of the refresh token's consent. A rotated refresh token belongs to one consent,
// whatever the client secret or scope.
func (c Client) grant() string {
	h := sha256.New()
	for _, part := range []string{c.TokenURL, c.ClientID, c.RefreshToken} {
		_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part) // the length keeps the parts apart
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Format prints a client without its secrets, for every verb of package fmt, and for slog.
func (c Client) Format(f fmt.State, _ rune) {
	where := c.Provider
	if u, err := url.Parse(c.TokenURL); err == nil && where == "" {
		where = u.Host
	}
	_, _ = io.WriteString(f, "oauth client "+c.ClientID+" at "+where)
}

// MarshalText is Format for JSON and slog.
func (c Client) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(c)), nil }
