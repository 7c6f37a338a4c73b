package relays

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/seal"
)

// Mask stands for a secret in answers.
const Mask = "******"

// Secret is one secret field of a record, where it stands: in clear, sealed or masked.
type Secret struct {
	// Field is what the client calls it, such as "smtp.auth.pass"; it is part of what a sealed value is bound to.
	Field string
	// Value is the field. Empty: there is no secret.
	Value *string
	// Goes are the places that learn the secret, or what it opens. None: it is never sent.
	Goes []Place

	url bool // Value is a URL, and the secret its password
}

// Place is somewhere a secret is sent to.
type Place struct {
	Field string // what the client calls the setting that says where
	Host  string // where; empty: nowhere, as for a proxy that is not used
}

// Secrets are all secrets of one record. The record's name, such as "account:shop", is the other part of what sealed values are bound to.
type Secrets []Secret

// Secrets lists the secrets of settings, in place. Whatever opens the relay (a refresh token gives access tokens, which go there) must not
// go to another relay, nor through a proxy that was not there when it was entered.
func (s *Settings) Secrets() Secrets {
	relay := Place{Field: s.at + "host", Host: s.host()}
	trust := Place{Field: s.at + "tls", Host: s.loosened()}
	proxy := Place{Field: "proxy", Host: hostOf(s.proxy)}
	var all Secrets
	if auth := s.server.Auth; auth != nil {
		all = append(all,
			Secret{Field: s.login + "pass", Value: &auth.Pass, Goes: []Place{relay, proxy, trust}},
			Secret{Field: s.login + "accessToken", Value: &auth.AccessToken, Goes: []Place{relay, proxy, trust}},
		)
	}
	if o := s.oauth; o != nil {
		goes := []Place{{Field: "oauth2.tokenUrl", Host: s.provider() + "/" + hostOf(o.TokenURL)}, relay, proxy, trust}
		all = append(all,
			Secret{Field: "oauth2.clientSecret", Value: &o.ClientSecret, Goes: goes},
			Secret{Field: "oauth2.refreshToken", Value: &o.RefreshToken, Goes: goes},
		)
	}
	return append(all, Secret{Field: "proxy", Value: &s.proxy, Goes: []Place{proxy}, url: true})
}

// loosened names what is left out of the protection on the way to the relay; empty: nothing. Whoever may change settings must not get to see a
// password by having it sent to somebody who only claims to be the relay.
func (s *Settings) loosened() string {
	t := s.server.TLS
	if t == nil {
		return ""
	}
	var all []string
	if t.RejectUnauthorized != nil && !*t.RejectUnauthorized && t.PinSHA256 == "" {
		all = append(all, "any certificate")
	}
	if t.StartTLS == "opportunistic" || t.StartTLS == "off" {
		all = append(all, "starttls "+t.StartTLS)
	}
	return strings.Join(all, ", ")
}

// Seal seals what is in clear and replaces what is masked by the sealed value of the record before (nil: there was none). It reports the
// masked fields that can't be kept.
func (all Secrets) Seal(ring *seal.Ring, record string, before Secrets) []fault.Field {
	var wrong []fault.Field
	for _, s := range all {
		switch value := s.get(); value {
		case "":
		case Mask:
			old := before.find(s.Field)
			if why := s.lost(old); why != "" {
				wrong = append(wrong, fault.Field{Key: s.Field, Message: why})
				continue
			}
			s.set(old.get())
		default:
			s.set(ring.Seal([]byte(value), record+":"+s.Field))
		}
	}
	return wrong
}

// lost says why the stored value can't stand for a masked one; empty: it can.
func (s Secret) lost(old Secret) string {
	if old.get() == "" {
		return "is masked, but there is no stored value to keep"
	}
	for i, place := range s.Goes {
		if place.Host != "" && !strings.EqualFold(place.Host, old.Goes[i].Host) {
			return "must be entered again when " + place.Field + " changes"
		}
	}
	return ""
}

// Open puts all in clear.
func (all Secrets) Open(ring *seal.Ring, record string) error {
	for _, s := range all {
		value := s.get()
		if value == "" {
			continue
		}
		plain, err := ring.Open(value, record+":"+s.Field)
		if err != nil {
			return fmt.Errorf("open %s of %s (was the secret of this instance changed?): %w", s.Field, record, err)
		}
		s.set(string(plain))
	}
	return nil
}

// Mask hides all.
func (all Secrets) Mask() {
	for _, s := range all {
		if s.get() != "" {
			s.set(Mask)
		}
	}
}

// Reseal seals anew what was sealed under an older secret of the instance, and reports whether there was any.
func (all Secrets) Reseal(ring *seal.Ring, record string) (bool, error) {
	changed := false
	for _, s := range all {
		value := s.get()
		if !ring.NeedsRotation(value) {
			continue
		}
		plain, err := ring.Open(value, record+":"+s.Field)
		if err != nil {
			return false, fmt.Errorf("open %s of %s: %w", s.Field, record, err)
		}
		s.set(ring.Seal(plain, record+":"+s.Field))
		changed = true
	}
	return changed, nil
}

func (all Secrets) find(field string) Secret {
	for _, s := range all {
		if s.Field == field {
			return s
		}
	}
	return Secret{}
}

// get reads the secret, out of its URL if it stands in one.
func (s Secret) get() string {
	switch {
	case s.Value == nil:
		return ""
	case !s.url:
		return *s.Value
	}
	u, err := url.Parse(*s.Value)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// set writes the secret, into its URL if it stands in one. A sealed value needs no escaping there, and the mask is left readable.
func (s Secret) set(value string) {
	if !s.url {
		*s.Value = value
		return
	}
	u, err := url.Parse(*s.Value)
	if err != nil || u.User == nil {
		return
	}
	user := url.UserPassword(u.User.Username(), value).String()
	if value == Mask {
		user = url.User(u.User.Username()).String() + ":" + Mask
	}
	u.User = nil
	*s.Value = u.Scheme + "://" + user + "@" + strings.TrimPrefix(u.String(), u.Scheme+"://")
}

// hostOf reads the host of a URL; empty when there is none.
func hostOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
