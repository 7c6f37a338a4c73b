package provider

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strings"
	"time"
)

const (
	minShared = 16
	maxShared = 256
)

// shared is a secret sent with each request, for providers that sign nothing. It may be in
//
//   - basic authentication: the whole "user:password" when the secret has a colon, else as the password of
//     any user;
//   - Authorization: Bearer;
//   - X-Webhook-Token, or X-MessageSystems-Webhook-Token, which is what SparkPost calls its authentication
//     token;
//   - token in the query of the address, for providers whose settings have room for an address only.
//
// Hashes are compared instead of the secrets, so the time does not even show a length.
type shared struct{ sum [sha256.Size]byte }

func sharedKey(secret string) (key, error) {
	if len(secret) < minShared || len(secret) > maxShared {
		return nil, errors.New("must have 16 to 256 characters")
	}
	for _, c := range []byte(secret) {
		if c < ' ' || c > '~' {
			return nil, errors.New("must be of printable ASCII characters")
		}
	}
	return shared{sha256.Sum256([]byte(secret))}, nil
}

func (s shared) verify(_ context.Context, _ *Verifier, r *incoming, _ time.Time) error {
	offered := offers(r.Request)
	if len(offered) == 0 {
		return missing("secret")
	}
	fits := 0
	for _, o := range offered {
		sum := sha256.Sum256([]byte(o))
		fits |= subtle.ConstantTimeCompare(sum[:], s.sum[:])
	}
	if fits == 0 {
		return mismatch()
	}
	return nil
}

// offers lists the possible secrets of a request. If a header is repeated, only the first counts.
func offers(r Request) []string {
	var found []string
	add := func(s string) {
		if s != "" && len(s) <= 4*maxShared {
			found = append(found, s)
		}
	}
	scheme, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(scheme) {
	case "bearer":
		add(rest)
	case "basic":
		if pair, err := base64.StdEncoding.DecodeString(rest); err == nil {
			_, password, _ := strings.Cut(string(pair), ":")
			add(string(pair))
			add(password)
		}
	}
	add(r.Header.Get("X-Webhook-Token"))
	add(r.Header.Get("X-MessageSystems-Webhook-Token"))
	add(r.Query.Get("token"))
	return found
}
