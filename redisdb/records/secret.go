package records

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb/seal"
)

// Mask replaces a secret in answers.
const Mask = "******"

// Secret is one secret field of a value: in clear, sealed or masked.
type Secret struct {
	// Field is the name in the API, such as "smtp.auth.pass". A sealed secret is bound to it.
	Field string
	// Value is the field. Nil, or empty: there is no secret.
	Value *string
	// URL is true if Value is a URL whose password is the secret.
	URL bool
	// Goes are the places that the secret, or what it opens, is sent to. None: it is never sent.
	Goes []Place
}

// Place is a host that a secret is sent to.
type Place struct {
	Field string // name of the setting with the host in the API
	Host  string // empty: none, as for a proxy that is not used
}

// keep seals secrets in clear, and replaces masked ones by the sealed secrets of the record before. It
// returns the masked fields that can't be kept.
func keep(all, before []Secret, ring *seal.Ring, place string) []fault.Field {
	var wrong []fault.Field
	for _, s := range all {
		if s.Get() != Mask {
			s.seal(ring, place)
			continue
		}
		old := find(before, s.Field)
		if why := s.lost(old); why != "" {
			wrong = append(wrong, fault.Field{Key: s.Field, Message: why})
			continue
		}
		s.Set(old.Get())
	}
	return wrong
}

// lost returns why the stored secret can't replace a masked one; empty: it can.
func (s Secret) lost(old Secret) string {
	if old.Get() == "" {
		return "is masked, but there is no stored value to keep"
	}
	for i, place := range s.Goes {
		if place.Host != "" && !strings.EqualFold(place.Host, old.Goes[i].Host) {
			return "must be entered again when " + place.Field + " changes"
		}
	}
	return ""
}

// open opens all secrets. After an error some are open.
func open(all []Secret, ring *seal.Ring, place string) error {
	for _, s := range all {
		if s.Get() == "" {
			continue
		}
		if err := s.open(ring, place); err != nil {
			return err
		}
	}
	return nil
}

// reseal seals secrets again that are sealed under an older secret of the instance, and reports whether there
// were any.
func reseal(all []Secret, ring *seal.Ring, place string) (bool, error) {
	changed := false
	for _, s := range all {
		renewed, needed, err := ring.Renew(s.Get(), s.place(place))
		switch {
		case err != nil:
			return false, s.broken(place, err)
		case needed:
			s.Set(renewed)
			changed = true
		}
	}
	return changed, nil
}

func find(all []Secret, field string) Secret {
	for _, s := range all {
		if s.Field == field {
			return s
		}
	}
	return Secret{}
}

func (s Secret) open(ring *seal.Ring, place string) error {
	plain, err := ring.Open(s.Get(), s.place(place))
	if err != nil {
		return s.broken(place, err)
	}
	s.Set(string(plain))
	return nil
}

// place returns the name that the sealed secret is bound to.
func (s Secret) place(record string) string { return record + ":" + s.Field }

func (s Secret) broken(record string, err error) error {
	return fmt.Errorf("open %s of %s (was the secret of this instance changed?): %w", s.Field, record, err)
}

func (s Secret) seal(ring *seal.Ring, place string) {
	if value := s.Get(); value != "" {
		s.Set(ring.Seal([]byte(value), s.place(place)))
	}
}

func (s Secret) mask() {
	if s.Get() != "" {
		s.Set(Mask)
	}
}

// Get returns the secret, which may be the password of a URL.
func (s Secret) Get() string {
	switch {
	case s.Value == nil:
		return ""
	case !s.URL:
		return *s.Value
	}
	u, err := url.Parse(*s.Value)
	if err != nil || u.User == nil {
		return ""
	}
	password, _ := u.User.Password()
	return password
}

// Set replaces the secret, which may be the password of a URL. A sealed value needs no escaping there, and
// the mask stays readable.
func (s Secret) Set(value string) {
	if !s.URL {
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
