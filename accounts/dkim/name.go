package dkim

import (
	"errors"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb/records"
)

// Check returns a key with its domain and selector in normal form, and its wrong fields: domain, selector,
// privateKey. If masked is true, a privateKey of ****** is valid: it means the stored one.
func Check(d api.DKIM, masked bool) (api.DKIM, []fault.Field) {
	var wrong fault.Fields
	add := func(key string, err error) {
		if err != nil {
			wrong.Add(key, "%s", err)
		}
	}
	var err error
	d.Domain, err = CheckDomain(d.Domain)
	add("domain", err)
	d.Selector, err = CheckSelector(d.Selector)
	add("selector", err)
	if !masked || d.PrivateKey != records.Mask {
		_, err = Parse(d.PrivateKey)
		add("privateKey", err)
	}
	return d, wrong
}

// CheckDomain returns a domain as in a signature: in lower case, as A-labels (RFC 6376 section 3.5). The
// error follows the name of a field.
func CheckDomain(domain string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(domain, "."))
	if err != nil || !message.IsName(ascii) || !strings.Contains(ascii, ".") {
		return "", errors.New("is not a domain name such as example.com")
	}
	if suffix, known := publicsuffix.PublicSuffix(ascii); known && suffix == ascii {
		return "", errors.New("is a domain that others register names below: receivers ignore its keys")
	}
	return ascii, nil
}

// CheckSelector returns a selector in lower case: letters, digits and hyphens, in labels separated by dots
// (RFC 6376 section 3.1). The error follows the name of a field.
func CheckSelector(selector string) (string, error) {
	selector = strings.ToLower(selector)
	if !message.IsName(selector) || len(selector) > 128 {
		return "", errors.New("is not a selector such as s1 or mail-2030: letters, digits and hyphens")
	}
	return selector, nil
}

// aligned reports whether a signature by a domain counts for mail from another, as in DMARC's relaxed mode:
// both belong to one organisational domain.
func aligned(domain, from string) bool {
	if domain == from {
		return true
	}
	one, err := publicsuffix.EffectiveTLDPlusOne(domain)
	if err != nil {
		return false
	}
	other, err := publicsuffix.EffectiveTLDPlusOne(from)
	return err == nil && one == other
}

// candidates returns the domains whose key may sign mail from a domain, the nearest first.
func candidates(from string) []string {
	list := []string{from}
	top, err := publicsuffix.EffectiveTLDPlusOne(from)
	if err != nil {
		return list
	}
	for domain := from; domain != top; {
		_, domain, _ = strings.Cut(domain, ".")
		list = append(list, domain)
	}
	return list
}
