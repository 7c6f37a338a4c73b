package records

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb/seal"
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
	// Goes is the place that the secret, or what it opens, is sent to; empty if it is never sent. A sealed
	// secret is bound to it.
	Goes []Place
}

// Place is a setting that decides where a secret goes, and whom Postroom takes for its receiver there.
type Place struct {
	Field string // name of the setting in the API
	Value string // in the form that is compared; empty if not set
}

// keep seals secrets in clear, and replaces masked ones by the sealed secrets of the record before. It
// returns the masked fields that can't be kept.
func keep(all, before []Secret, ring *seal.Ring, place string) []fault.Field {
	var wrong fault.Fields
	for _, s := range all {
		if s.Get() != Mask {
			s.seal(ring, place)
			continue
		}
		old := find(before, s.Field)
		if why := s.lost(old); why != "" {
			wrong.Add(s.Field, "%s", why)
			continue
		}
		s.Set(old.Get())
	}
	return wrong
}

// lost returns why the stored secret can't replace a masked one; empty if it can.
func (s Secret) lost(old Secret) string {
	if old.Get() == "" {
		return "is masked, but there is no stored value to keep"
	}
	for i, place := range s.Goes {
		if place != old.Goes[i] {
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

// place returns the name that the sealed secret is bound to. It includes where the secret goes, so that
// people who write to Redis can't have it sent elsewhere.
func (s Secret) place(record string) string {
	name := record + ":" + s.Field
	for _, to := range s.Goes {
		name += fmt.Sprintf(" %s=%q", to.Field, to.Value) // the quotes keep the parts apart
	}
	return name
}

func (s Secret) broken(record string, err error) error {
	why := "was the secret of this instance changed?"
	if errors.Is(err, seal.ErrDamaged) {
		why = "it was changed in Redis"
		for i, to := range s.Goes {
			if i == 0 {
				why += ", or one of " + to.Field
				continue
			}
			why += ", " + to.Field
		}
		why += ": enter it again"
	}
	return fmt.Errorf("open %s of %s (%s): %w", s.Field, record, why, err)
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
