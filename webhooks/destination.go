package webhooks

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// CheckURL checks the URL of an endpoint. It must be absolute, http or https, name a host and carry no user
// or password, which would appear in logs. The host's address is checked when it is dialed, not here.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with https:// or http://")
	case u.Hostname() == "":
		return errors.New("must name a host")
	case u.User != nil:
		return errors.New("must not hold a user or password; use headers")
	case u.Fragment != "":
		return errors.New("must not hold a fragment")
	}
	return nil
}

// octet matches an octet in percent signs.
var octet = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

// writtenQuery returns a query with octets in percent signs for what RFC 3986, 3.4, doesn't allow in one. A
// blank would end the target of the request line (RFC 9112, 3).
func writtenQuery(query string) string {
	var b strings.Builder
	for i := range len(query) {
		switch c := query[i]; {
		case c <= ' ' || c >= 0x7f || strings.IndexByte("\"#<>[\\]^`{|}", c) >= 0,
			c == '%' && !octet.MatchString(query[i:]):
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
