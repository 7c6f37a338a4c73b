package people

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
)

// How long links work.
const (
	LinkTTL   = 24 * time.Hour
	FirstLife = 10 * time.Minute
)

// Link is the purpose of a one-time link.
type Link struct {
	Name  string `json:"name,omitempty"`  // whose password it sets; empty if it makes the first admin
	State string `json:"state,omitempty"` // the person's when it was made, see record.state
	Ends  int64  `json:"ends"`            // Unix time
}

// state changes with the password of a person, and with the person.
func (r *record) state() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", r.Created.UnixMilli(), r.Password))
	return hex.EncodeToString(sum[:])
}

// NewLink makes a one-time link for setting a person's password, and returns its secret and its end.
func (p *People) NewLink(ctx context.Context, name string, now time.Time) (string, time.Time, error) {
	r, _, err := p.store.load(ctx, canonical(name))
	switch {
	case err != nil:
		return "", time.Time{}, err
	case r == nil:
		return "", time.Time{}, personNotFound()
	case r.Identity != nil:
		return "", time.Time{}, fault.New(fault.Conflict, "NoPassword", "%s signs in at %s and has no "+
			"password",
			r.Name, r.Identity.Issuer)
	}
	return p.putLink(ctx, Link{Name: r.Name, State: r.state()}, LinkTTL, now)
}

// FirstLink makes a one-time link that makes the first admin. It returns "" if there are people already.
func (p *People) FirstLink(ctx context.Context, now time.Time) (string, error) {
	if n, err := p.Count(ctx); err != nil || n > 0 {
		return "", err
	}
	secret, _, err := p.putLink(ctx, Link{}, FirstLife, now)
	return secret, err
}

func (p *People) putLink(ctx context.Context, l Link, life time.Duration, now time.Time) (string, time.Time,
	error) {
	ends := stamp(now).Add(life)
	l.Ends = ends.Unix()
	plain, err := json.Marshal(l)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("people: encode a link: %w", err)
	}
	secret := rand.Text()
	hash := linkHash(secret)
	err = p.store.client.Set(ctx, linkKey(hash), p.store.ring.Seal(plain, linkName(hash)), life).Err()
	if err != nil {
		return "", time.Time{}, redisdb.Failed(err, "people: store a link")
	}
	return secret, ends, nil
}

func linkHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Link returns what a link is for, and does not use it up. NotFound: it was used, has ended, or never was.
func (p *People) Link(ctx context.Context, secret string, now time.Time) (Link, error) {
	hash := linkHash(secret)
	text, err := p.store.client.Get(ctx, linkKey(hash)).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return Link{}, noLink()
	case err != nil:
		return Link{}, redisdb.Failed(err, "people: look up a link")
	}
	var l Link
	plain, err := p.store.ring.Open(text, linkName(hash))
	if err != nil {
		p.log.ErrorContext(ctx, "link refused", "reason", err)
		return Link{}, noLink()
	}
	if err := json.Unmarshal(plain, &l); err != nil {
		return Link{}, fmt.Errorf("people: decode a link: %w", err)
	}
	if now.Unix() >= l.Ends {
		return Link{}, noLink()
	}
	if l.Name == "" {
		n, err := p.Count(ctx)
		if err == nil && n > 0 {
			err = noLink()
		}
		return l, err
	}
	r, _, err := p.store.load(ctx, l.Name)
	if err == nil && (r == nil || r.Disabled || r.state() != l.State) {
		err = noLink()
	}
	return l, err
}

// Use uses a link up and sets the password of its person, or makes the first admin by the given name. A name
// or password that is refused does not use it up.
func (p *People) Use(ctx context.Context, secret, name, password string, now time.Time) (api.PersonInfo,
	error) {
	l, err := p.Link(ctx, secret, now)
	if err != nil {
		return api.PersonInfo{}, err
	}
	first := api.PersonRequest{Person: canonical(name), Role: api.RoleAdmin}
	if l.Name == "" {
		err = validate(first)
	} else {
		name = l.Name
	}
	if err == nil {
		err = validatePassword("password", canonical(name), password)
	}
	if err != nil {
		return api.PersonInfo{}, err
	}
	hash, err := p.hashes.hash(ctx, password)
	if err != nil {
		return api.PersonInfo{}, err
	}
	used, err := p.store.client.Del(ctx, linkKey(linkHash(secret))).Result()
	switch {
	case err != nil:
		return api.PersonInfo{}, redisdb.Failed(err, "people: use a link")
	case used == 0:
		return api.PersonInfo{}, noLink()
	}
	if l.Name == "" {
		return p.create(ctx, first, hash, now)
	}
	return p.edit(ctx, l.Name, now, func(r *record) error {
		r.Password = hash
		return nil
	})
}

func noLink() error {
	return fault.New(fault.NotFound, "LinkGone",
		"This link was already used, has expired or was replaced. Ask for a new one")
}
