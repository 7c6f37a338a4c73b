package records

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb/seal"
)

// Mask stands for a secret that is not shown.
const Mask = "******"

// Secret is one secret field of a value, where it stands: in clear, sealed or masked.
type Secret struct {
	// Field is what the client calls it, such as "smtp.auth.pass"; it is part of what a sealed secret is bound
	// to.
	Field string
	// Value is the field. Nil, or empty: there is no secret.
	Value *string
	// URL says that Value is a URL, and the secret its password.
	URL bool
	// Goes are the places that learn the secret, or what it opens. None: it is never sent.
	Goes []Place
}

// Place is somewhere a secret is sent to.
type Place struct {
	Field string // what the client calls the setting that says where
	Host  string // where; empty: nowhere, as for a proxy that is not used
}

// keep seals what is in clear and replaces what is masked by the sealed secret of the record before. It
// reports the masked fields that can't be kept.
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

// lost says why the stored secret can't stand for a masked one; empty: it can.
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

// open puts all in clear. After an error some may be.
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

// reseal seals anew what was sealed under an older secret of the instance, and reports whether there was any.
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

// place is what a sealed secret is bound to.
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

// Get reads the secret, out of its URL if it stands in one.
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

// Set writes the secret, into its URL if it stands in one. A sealed value needs no escaping there, and the
// mask is left readable.
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
