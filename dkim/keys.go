package dkim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/seal"
)

// mask stands for a private key in answers.
const mask = "******"

// putTries is how often a change is tried against others at the same time.
const putTries = 5

// Options are the choices of the one who runs Postroom.
type Options struct {
	// Logger gets what was sealed anew. Nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock, for tests. Nil: the machine's.
	Now func() time.Time
}

// Keys is the store of domain keys. It is safe for concurrent use, by any number of processes on one Redis.
type Keys struct {
	store store
	ring  *seal.Ring
	log   *slog.Logger
	now   func() time.Time
	ready *redisdb.Cache[*Signature] // by domain of From; nil: mail from there goes unsigned
}

// NewKeys prepares the store on an open database. It does no I/O.
func NewKeys(db *redisdb.DB, ring *seal.Ring, o Options) (*Keys, error) {
	if db == nil || ring == nil {
		return nil, errors.New("dkim: a database and a key ring are needed")
	}
	k := &Keys{store: store{db.Client()}, ring: ring, log: o.Logger, now: o.Now}
	k.ready = redisdb.NewCache[*Signature](db, versionKey(), nil)
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if k.now == nil {
		k.now = time.Now
	}
	return k, nil
}

// Put stores the key of a domain, in place of the one there was; a masked privateKey keeps that. Invalid reports every wrong field.
func (k *Keys) Put(ctx context.Context, d api.DKIM) (api.DomainKey, error) {
	d, wrong := Check(d, true)
	if err := fault.InvalidFields(wrong); err != nil {
		return api.DomainKey{}, err
	}
	for range putTries {
		old, err := k.load(ctx, d.Domain)
		if err != nil {
			return api.DomainKey{}, err
		}
		next, err := k.sealed(d, old)
		if err != nil {
			return api.DomainKey{}, err
		}
		done, err := k.put(ctx, next, old)
		if err != nil || done {
			return next.answer(), err
		}
	}
	return api.DomainKey{}, fault.New(fault.Conflict, "DomainKeyChanged", "The key is being changed by others; try again")
}

// sealed makes the record of a key.
func (k *Keys) sealed(d api.DKIM, old *stored) (*stored, error) {
	if d.PrivateKey == mask {
		if old == nil {
			return nil, fault.InvalidFields([]fault.Field{{Key: "privateKey", Message: "is masked, but there is no stored key to keep"}})
		}
		next := *old
		next.Selector = d.Selector
		return &next, nil
	}
	key, err := Parse(d.PrivateKey)
	if err != nil {
		return nil, fault.InvalidFields([]fault.Field{{Key: "privateKey", Message: err.Error()}})
	}
	record, err := Record(key)
	if err != nil {
		return nil, fmt.Errorf("dkim: key of %s: %w", d.Domain, err)
	}
	return &stored{
		Domain: d.Domain, Selector: d.Selector, Sealed: k.ring.Seal([]byte(d.PrivateKey), place(d.Domain)),
		Record: record, Created: k.now().UTC().Truncate(time.Millisecond),
	}, nil
}

// Get shows the key of a domain, masked. Unknown: NotFound.
func (k *Keys) Get(ctx context.Context, domain string) (api.DomainKey, error) {
	name, err := CheckDomain(domain)
	if err != nil {
		return api.DomainKey{}, notFound()
	}
	s, err := k.load(ctx, name)
	switch {
	case err != nil:
		return api.DomainKey{}, err
	case s == nil:
		return api.DomainKey{}, notFound()
	}
	return s.answer(), nil
}

// List shows all keys, masked, by their domains.
func (k *Keys) List(ctx context.Context) (api.DomainKeyPage, error) {
	all, err := k.store.all(ctx)
	if err != nil {
		return api.DomainKeyPage{}, away(err, "list keys")
	}
	p := api.DomainKeyPage{Total: len(all), Keys: make([]api.DomainKey, len(all))}
	for i, s := range all {
		p.Keys[i] = s.answer()
	}
	return p, nil
}

// Delete removes the key of a domain: its mail goes unsigned from now on. Unknown: NotFound.
func (k *Keys) Delete(ctx context.Context, domain string) error {
	name, err := CheckDomain(domain)
	if err != nil {
		return notFound()
	}
	existed, err := k.store.remove(ctx, name)
	switch {
	case err != nil:
		return away(err, "delete the key of %s", name)
	case !existed:
		return notFound()
	}
	k.ready.Clear()
	return nil
}

// For gives the signature for mail from a domain: by its own key, or that of the nearest domain above it. Nil: there is none. The answer is
// at most about a second old; an error of Redis is Unavailable.
func (k *Keys) For(ctx context.Context, domain string) (*Signature, error) {
	s, _, err := k.ready.Get(ctx, domain, k.now(), func(ctx context.Context) (*Signature, bool, error) {
		s, err := k.find(ctx, domain)
		return s, err == nil, err // that there is none is worth remembering too
	})
	if redisdb.Unavailable(err) && fault.KindOf(err) == fault.Internal {
		err = away(err, "look up the key of %s", domain)
	}
	return s, err
}

// find looks for the nearest key and opens it.
func (k *Keys) find(ctx context.Context, domain string) (*Signature, error) {
	name, err := CheckDomain(domain)
	if err != nil {
		return nil, nil // such as localhost, for which nobody can publish a key
	}
	found, err := k.store.first(ctx, candidates(name))
	switch {
	case err != nil:
		return nil, away(err, "look up the key of %s", name)
	case found == nil:
		return nil, nil
	}
	plain, err := k.open(found)
	if err != nil {
		return nil, err
	}
	key, err := Parse(string(plain))
	if err != nil {
		return nil, fmt.Errorf("dkim: the stored key of %s %w", found.Domain, err)
	}
	return &Signature{Domain: found.Domain, Selector: found.Selector, Key: key}, nil
}

// Reseal seals every key that was sealed under an older secret under the current one, and says how many. Afterwards the older secret is no
// longer needed for keys. What can't be opened is reported after the others are done.
func (k *Keys) Reseal(ctx context.Context) (int, error) {
	all, err := k.store.all(ctx)
	if err != nil {
		return 0, away(err, "list keys")
	}
	n := 0
	var failed []error
	for _, s := range all {
		if !k.ring.NeedsRotation(s.Sealed) {
			continue
		}
		plain, err := k.open(s)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		next := *s
		next.Sealed = k.ring.Seal(plain, place(s.Domain))
		done, err := k.put(ctx, &next, s)
		if err != nil {
			return n, err
		}
		if done { // else somebody has just changed it, and sealed it under the current secret
			n++
		}
	}
	if n > 0 {
		k.log.Info("domain keys were sealed under the current secret", "keys", n)
	}
	return n, errors.Join(failed...)
}

func (k *Keys) load(ctx context.Context, domain string) (*stored, error) {
	s, err := k.store.first(ctx, []string{domain})
	if err != nil {
		return nil, away(err, "read the key of %s", domain)
	}
	return s, nil
}

func (k *Keys) put(ctx context.Context, next, old *stored) (bool, error) {
	done, err := k.store.put(ctx, next, old)
	if err != nil {
		return false, away(err, "store the key of %s", next.Domain)
	}
	if done {
		k.ready.Clear()
	}
	return done, nil
}

func (k *Keys) open(s *stored) ([]byte, error) {
	plain, err := k.ring.Open(s.Sealed, place(s.Domain))
	if err != nil {
		return nil, fmt.Errorf("dkim: open the key of %s (was the secret of this instance changed?): %w", s.Domain, err)
	}
	return plain, nil
}

// place names where a sealed key belongs, and the only place where it opens.
func place(domain string) string { return "dkim:" + domain }

func notFound() error {
	return fault.New(fault.NotFound, "DomainKeyNotFound", "No DKIM key is stored for this domain; add it with PUT /v1/dkim/{domain}")
}
