package people

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	// maxFailures is the number of failures of a name in an hour beyond which only known networks may try.
	maxFailures = 100
	// maxCodes is the number of wrong codes with the right password in an hour.
	maxCodes = 10
	// maxNetworks is the number of networks that are known of a person.
	maxNetworks = 8
)

// WrongLogin is the error, of kind Unauthorized, Forbidden or Limited, of a login that was refused.
type WrongLogin struct {
	Person string // whose name it was, if anyone's
	err    *fault.Error
}

// Error returns the message for the client, which does not show what was wrong with a password.
func (w *WrongLogin) Error() string { return w.err.Error() }

// Unwrap returns the fault.
func (w *WrongLogin) Unwrap() error { return w.err }

// Login checks a name, a password and, if the person has a second factor, a code of the app or a recovery
// code, which it uses up. from is the client's network. The error is a *WrongLogin, or Unavailable.
func (p *People) Login(ctx context.Context, name, password, code string, addr netip.Addr, from netip.Prefix,
	now time.Time) (*Holder, error) {
	name = canonical(name)
	r, _, err := p.load(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := p.limited(ctx, name, r, from); err != nil {
		return nil, err
	}
	stored := ""
	if r != nil && !r.Disabled {
		stored = r.Password
	}
	right, err := p.hashes.matches(ctx, stored, password)
	if err != nil {
		return nil, err
	}
	if right {
		h, err := p.admit(ctx, r, code, addr, from, now)
		if h != nil || err != nil {
			return h, err
		}
	}
	if names.MatchString(name) {
		if _, err := p.store.count(ctx, failuresKey(name)); err != nil {
			p.log.WarnContext(ctx, "failed login not counted", "error", err)
		}
	}
	return nil, wrong(r, fault.New(fault.Unauthorized, "WrongLogin",
		"The name, the password or the code is wrong"))
}

// KnownFrom reports whether the person of a name has logged in from a network before.
func (p *People) KnownFrom(ctx context.Context, name string, from netip.Prefix) (bool, error) {
	r, _, err := p.load(ctx, canonical(name))
	return r.knows(from), err
}

func (r *record) knows(from netip.Prefix) bool {
	return r != nil && from.IsValid() && slices.Contains(r.Networks, from)
}

// load reads a person; nil if there is none, or none that Postroom wrote.
func (p *People) load(ctx context.Context, name string) (*record, string, error) {
	if !names.MatchString(name) {
		return nil, "", nil
	}
	r, text, err := p.store.load(ctx, name)
	if _, forged := errors.AsType[*refused](err); forged {
		p.log.ErrorContext(ctx, "person refused", "person", name, "reason", err)
		return nil, "", nil
	}
	return r, text, err
}

// limited refuses a name that was guessed at too often, from networks that are new to its person.
func (p *People) limited(ctx context.Context, name string, r *record, from netip.Prefix) error {
	if r.knows(from) {
		return nil
	}
	n, err := p.store.counted(ctx, failuresKey(name))
	if err != nil {
		return redisdb.Failed(err, "people: count the failures of a name")
	}
	if n < maxFailures {
		return nil
	}
	f := fault.New(fault.Limited, "TooManyFailures",
		"Too many failed sign-ins with this name. Sign in from an address that you used before, or wait "+
			"an hour")
	f.RetryAfter = time.Hour
	return wrong(r, f)
}

// admit checks the second factor of a person whose password was right, and stores the login. It returns nil
// if the code was wrong.
func (p *People) admit(ctx context.Context, r *record, code string, addr netip.Addr, from netip.Prefix,
	now time.Time) (*Holder, error) {
	password := r.Password
	barred := false
	if r.TOTP != "" {
		n, err := p.store.counted(ctx, codesKey(r.Name))
		if err != nil {
			return nil, redisdb.Failed(err, "people: count the wrong codes of a person")
		}
		barred = n >= maxCodes
	}
	refusedNow := errors.New("refused")
	done, err := p.change(ctx, r.Name, func(r *record) error {
		if r.Disabled || r.Password != password || !r.useCode(code, barred, now) {
			return refusedNow
		}
		r.entered(addr, from, now)
		return nil
	})
	switch {
	case errors.Is(err, refusedNow) || fault.Is(err, fault.NotFound):
		if _, err := p.store.count(ctx, codesKey(r.Name)); err != nil {
			p.log.WarnContext(ctx, "wrong code not counted", "error", err)
		}
		return nil, nil
	case err != nil:
		return nil, err
	}
	return done.holder(), nil
}

// entered notes a login.
func (r *record) entered(addr netip.Addr, from netip.Prefix, now time.Time) {
	r.LastLogin, r.Address = stamp(now), ""
	if addr.IsValid() {
		r.Address = addr.String()
	}
	if from.IsValid() {
		r.Networks = slices.DeleteFunc(r.Networks, func(p netip.Prefix) bool { return p == from })
		r.Networks = slices.Insert(r.Networks, 0, from)
		r.Networks = r.Networks[:min(len(r.Networks), maxNetworks)]
	}
}

func wrong(r *record, f *fault.Error) error {
	w := &WrongLogin{err: f}
	if r != nil {
		w.Person = r.Name
	}
	return w
}
