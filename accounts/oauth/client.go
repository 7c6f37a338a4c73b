package oauth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strconv"
)

// Client is what is needed to ask for access tokens on an owner's behalf. Everything is in clear text:
// whoever stores one seals the secrets. Printed or logged it shows none of them.
type Client struct {
	// Provider fills in TokenURL and Scope where these are empty: "gmail" or "office365". Empty: TokenURL has to
	// be given.
	Provider string
	// TokenURL is the token endpoint: https, or http on the loopback interface. Empty: the provider's.
	TokenURL string
	// ClientID and ClientSecret are what the provider registered the application under. ClientSecret may be
	// empty for a public client.
	ClientID, ClientSecret string
	// RefreshToken is what the owner's consent gave.
	RefreshToken string
	// Scope is asked for with each token, several separated by spaces. Empty: the provider's, or none, which
	// means the scope of the consent.
	Scope string
}

// provider is a token server that is known by name.
type provider struct{ tokenURL, scope string }

// providerNamed knows the providers. Microsoft's server gives tokens for one service at a time and has to be
// told which; the tenant "common" serves all organisations, and one with an application of its own gives its
// TokenURL.
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

// complete fills in what the provider knows, and refuses what can't work.
func (c Client) complete() (Client, error) {
	p, known := providerNamed(c.Provider)
	if !known {
		return c, fmt.Errorf("the provider %q is not known", c.Provider)
	}
	if c.TokenURL == "" {
		c.TokenURL = p.tokenURL
	}
	if c.Scope == "" {
		c.Scope = p.scope
	}
	if c.ClientID == "" || c.RefreshToken == "" {
		return c, errors.New("a client id and a refresh token are needed")
	}
	return c, CheckTokenURL(c.TokenURL)
}

// CheckTokenURL says what is wrong with the address of a token endpoint; nil when nothing is. Client secrets
// and refresh tokens are sent there, so it must be https; http is for tests and for proxies on the loopback
// interface. The text of the error follows on "tokenUrl".
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

// grant names the consent that the refresh token stands for. A rotated refresh token belongs to one consent,
// whatever client secret or scope it is used with.
func (c Client) grant() string {
	h := sha256.New()
	for _, part := range []string{c.TokenURL, c.ClientID, c.RefreshToken} {
		_, _ = io.WriteString(h, strconv.Itoa(len(part))+":"+part) // the length keeps the parts apart
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Format shows a client without its secrets, for every verb of package fmt; slog prints it so, too.
func (c Client) Format(f fmt.State, _ rune) {
	where := c.Provider
	if u, err := url.Parse(c.TokenURL); err == nil && where == "" {
		where = u.Host
	}
	_, _ = io.WriteString(f, "oauth client "+c.ClientID+" at "+where)
}

// MarshalText is Format for JSON and slog.
func (c Client) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(c)), nil }
