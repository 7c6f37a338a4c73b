package webhooks

import (
	"errors"
	"net/url"
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
