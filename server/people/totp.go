package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

const (
	stepSeconds   = 30
	recoveryCodes = 10
)

// useCode reports whether the person needs no code, or it is right, and uses it up. If the codes of the app
// are barred, only recovery codes are right.
func (r *record) useCode(code string, barred bool, now time.Time) bool {
	if r.TOTP == "" {
		return true
	}
	code = strings.Map(func(c rune) rune {
		if c == ' ' || c == '-' {
			return -1
		}
		return c
	}, strings.ToUpper(code))
	if step, ok := matchCode(r.TOTP, code, r.Step, now); ok && !barred {
		r.Step = step
		return true
	}
	i := slices.Index(r.Recovery, recoveryHash(code))
	if i < 0 {
		return false
	}
	r.Recovery = slices.Delete(r.Recovery, i, i+1)
	return true
}

// matchCode returns the step of a code: the present one, the one before or the one after, if it is later than
// the last one that was used.
func matchCode(secret, code string, last int64, now time.Time) (int64, bool) {
	present := now.Unix() / stepSeconds
	for step := max(present-1, last+1); step <= present+1; step++ {
		ok, err := hotp.ValidateCustom(code, uint64(step), secret, hotp.ValidateOpts{Digits: otp.DigitsSix,
			Algorithm: otp.AlgorithmSHA1})
		if ok && err == nil {
			return step, true
		}
	}
	return 0, false
}

// recoveryHash needs no salt and no cost: a code has 80 random bits.
func recoveryHash(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// Enrol makes a secret for an app. It counts once Confirm got a code of it.
func (p *People) Enrol(ctx context.Context, name, password string, now time.Time) (api.TOTPSecret, error) {
	secret := make([]byte, 20)
	rand.Read(secret) // never fails (crypto/rand)
	text := base32.StdEncoding.EncodeToString(secret)
	if err := p.proven(ctx, name, password); err != nil {
		return api.TOTPSecret{}, err
	}
	_, err := p.change(ctx, name, func(r *record) error {
		if r.TOTP != "" {
			return fault.New(fault.Conflict, "HasTOTP", "There is already a second factor. Remove it first")
		}
		r.Pending, r.Updated = text, stamp(now)
		return nil
	})
	if err != nil {
		return api.TOTPSecret{}, err
	}
	return p.secretOf(name, text), nil
}

// Enrolling returns the secret that waits for its first code; empty if none does.
func (p *People) Enrolling(ctx context.Context, name string) (api.TOTPSecret, error) {
	r, _, err := p.store.load(ctx, name)
	if err != nil || r == nil || r.Pending == "" {
		return api.TOTPSecret{}, err
	}
	return p.secretOf(name, r.Pending), nil
}

// secretOf returns a secret as apps read it
// (https://github.com/google/google-authenticator/wiki/Key-Uri-Format).
func (p *People) secretOf(name, secret string) api.TOTPSecret {
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/Postroom:" + name,
		RawQuery: url.Values{"secret": {secret}, "issuer": {"Postroom"}}.Encode()}
	return api.TOTPSecret{Secret: secret, URL: u.String()}
}

// Confirm makes the secret of Enrol the second factor, with a first code of it. It returns recovery codes,
// and ends all sessions of the person.
func (p *People) Confirm(ctx context.Context, name, code string, now time.Time) (api.RecoveryCodes, error) {
	codes, hashes := newCodes()
	_, err := p.edit(ctx, name, now, func(r *record) error {
		if r.Pending == "" {
			return fault.New(fault.Conflict, "NoTOTP", "There is no second factor to confirm")
		}
		step, ok := matchCode(r.Pending, strings.TrimSpace(code), r.Step, now)
		if !ok {
			return fault.InvalidField("code", "isn't the code that the app shows. Check the clock of its "+
				"device")
		}
		r.TOTP, r.Step, r.Pending, r.Recovery = r.Pending, step, "", hashes
		return nil
	})
	if err != nil {
		return api.RecoveryCodes{}, err
	}
	return api.RecoveryCodes{RecoveryCodes: codes}, nil
}

func newCodes() (codes, hashes []string) {
	for range recoveryCodes {
		code := rand.Text()[:16]
		codes = append(codes, strings.ToLower(code[:4]+"-"+code[4:8]+"-"+code[8:12]+"-"+code[12:]))
		hashes = append(hashes, recoveryHash(code))
	}
	return codes, hashes
}

// RemoveTOTP removes the second factor of a person who proves to be that person, and ends all sessions of the
// person.
func (p *People) RemoveTOTP(ctx context.Context, name, password string, now time.Time) error {
	if err := p.proven(ctx, name, password); err != nil {
		return err
	}
	_, err := p.ResetTOTP(ctx, name, now)
	return err
}

// ResetTOTP removes the second factor of a person, and ends all sessions of the person.
func (p *People) ResetTOTP(ctx context.Context, name string, now time.Time) (api.PersonInfo, error) {
	return p.edit(ctx, name, now, func(r *record) error {
		r.TOTP, r.Pending, r.Recovery = "", "", nil
		return nil
	})
}

// ChangePassword replaces the own password, and ends all sessions of the person.
func (p *People) ChangePassword(ctx context.Context, name string, req api.PasswordChange,
	now time.Time) error {
	if err := validatePassword("newPassword", name, req.NewPassword); err != nil {
		return err
	}
	if err := p.proven(ctx, name, req.Password); err != nil {
		return err
	}
	hash, err := p.hashes.hash(ctx, req.NewPassword)
	if err != nil {
		return err
	}
	_, err = p.edit(ctx, name, now, func(r *record) error {
		r.Password = hash
		return nil
	})
	return err
}

// proven refuses a wrong password of the person. A session that somebody left open must not suffice to guess
// it: failures count as login failures, and after 10 an hour every password is refused.
func (p *People) proven(ctx context.Context, name, password string) error {
	r, _, err := p.store.load(ctx, name)
	if err != nil {
		return err
	}
	n, err := p.store.counted(ctx, codesKey(name))
	if err != nil {
		return redisdb.Failed(err, "people: count the wrong passwords of a person")
	}
	if n >= maxCodes {
		f := fault.New(fault.Limited, "TooManyFailures", "Too many wrong passwords. Wait an hour")
		f.RetryAfter = time.Hour
		return f
	}
	stored := ""
	if r != nil {
		stored = r.Password
	}
	right, err := p.hashes.matches(ctx, stored, password)
	switch {
	case err != nil:
		return err
	case right:
		return nil
	}
	if _, err := p.store.count(ctx, codesKey(name)); err != nil {
		p.log.WarnContext(ctx, "wrong password not counted", "error", err)
	}
	return fault.InvalidField("password", "is not your password")
}
