package dkim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/records"
	"github.com/postroom/postroom/redisdb/seal"
)

// Options are the choices of the one who runs Postroom.
type Options struct {
	// Now is the clock, for tests. Nil: the machine's.
	Now func() time.Time
}

// stored is a domain's key as it is kept.
type stored = records.Record[api.DomainKey]

// Keys is the store of domain keys. It is safe for concurrent use, by any number of processes on one Redis.
type Keys struct {
	store *records.Store[api.DomainKey]
	now   func() time.Time
	ready *redisdb.Cache[*Signature] // by domain of From; nil: mail from there goes unsigned
}

// NewKeys prepares the store on an open database. It does no I/O.
func NewKeys(db *redisdb.DB, ring *seal.Ring, o Options) (*Keys, error) {
	if db == nil || ring == nil {
		return nil, errors.New("dkim: a database and a key ring are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keys{now: o.Now}
	k.store = records.New(db, ring, records.Kind[api.DomainKey]{
		// a domain has a dot, so none is the version's key
		Key: "dkim", Index: "dkim", Name: "DKIM key", Code: "DomainKeyChanged", Missing: notFound,
		Secrets: func(k *api.DomainKey) []records.Secret {
			return []records.Secret{{Field: "privateKey", Value: &k.PrivateKey}}
		},
	}, records.Options[api.DomainKey]{Forget: func(string) { k.ready.Clear() }, Now: o.Now})
	k.ready = redisdb.NewCache[*Signature](db, k.store.VersionKey(), nil)
	return k, nil
}

// Put stores the key of a domain, in place of the one there was; a masked privateKey keeps that. Invalid
// reports every wrong field.
func (k *Keys) Put(ctx context.Context, d api.DKIM) (api.DomainKey, error) {
	d, wrong := Check(d, true)
	if err := fault.InvalidFields(wrong); err != nil {
		return api.DomainKey{}, err
	}
	fresh, err := k.published(d)
	if err != nil {
		return api.DomainKey{}, err
	}
	var next api.DomainKey
	_, err = k.store.Change(ctx, d.Domain, func(old *stored) (api.DomainKey, error) {
		next = fresh
		if d.PrivateKey == records.Mask && old != nil {
			next.Record, next.Created = old.Value.Record, old.Value.Created
		}
		return next, nil
	})
	next.PrivateKey = records.Mask
	return next, err
}

// published gives a new key with what is to be published of it; of a masked one that is not known.
func (k *Keys) published(d api.DKIM) (api.DomainKey, error) {
	next := api.DomainKey{DKIM: d, Created: k.now().UTC().Truncate(time.Millisecond)}
	if d.PrivateKey == records.Mask {
		return next, nil
	}
	key, err := Parse(d.PrivateKey)
	if err == nil {
		next.Record, err = Record(key)
	}
	if err != nil {
		return next, fmt.Errorf("dkim: key of %s: %w", d.Domain, err)
	}
	return next, nil
}

// Get shows the key of a domain, masked. Unknown: NotFound.
func (k *Keys) Get(ctx context.Context, domain string) (api.DomainKey, error) {
	name, err := CheckDomain(domain)
	if err != nil {
		return api.DomainKey{}, notFound(domain)
	}
	r, err := k.store.Get(ctx, name)
	if err != nil {
		return api.DomainKey{}, err
	}
	return r.Value, nil
}

// List shows all keys, masked, by their domains.
func (k *Keys) List(ctx context.Context) (api.DomainKeyPage, error) {
	p := api.DomainKeyPage{Keys: []api.DomainKey{}}
	err := k.store.Each(ctx, func(r *stored) error {
		p.Keys = append(p.Keys, r.Value)
		return nil
	})
	p.Total = len(p.Keys)
	return p, err
}

// Delete removes the key of a domain: its mail goes unsigned from now on. Unknown: NotFound.
func (k *Keys) Delete(ctx context.Context, domain string) error {
	name, err := CheckDomain(domain)
	if err != nil {
		return notFound(domain)
	}
	return k.store.Delete(ctx, name)
}

// Reseal seals anew, under the current secret of the instance, what was sealed under an older one: see
// [records.Store.Reseal].
func (k *Keys) Reseal(ctx context.Context) (int, error) { return k.store.Reseal(ctx) }

// For gives the signature for mail from a domain: by its own key, or that of the nearest domain above it.
// Nil: there is none. The answer is at most about a second old; an error of Redis is Unavailable.
func (k *Keys) For(ctx context.Context, domain string) (*Signature, error) {
	s, _, err := k.ready.Get(ctx, domain, k.now(), func(ctx context.Context) (*Signature, bool, error) {
		s, err := k.find(ctx, domain)
		return s, err == nil, err // that there is none is worth remembering too
	})
	return s, err
}

// find looks for the nearest key and makes it ready to sign.
func (k *Keys) find(ctx context.Context, domain string) (*Signature, error) {
	name, err := CheckDomain(domain)
	if err != nil {
		return nil, nil // such as localhost, for which nobody can publish a key
	}
	r, err := k.store.Open(ctx, candidates(name)...)
	switch {
	case err != nil || r == nil:
		return nil, err
	case r.Broken != nil:
		return nil, r.Broken
	}
	key, err := Parse(r.Value.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("dkim: the stored key of %s %w", r.ID, err)
	}
	return &Signature{Domain: r.ID, Selector: r.Value.Selector, Key: key}, nil
}

func notFound(string) error {
	return fault.New(fault.NotFound, "DomainKeyNotFound",
		"No DKIM key is stored for this domain; add it with PUT /v1/dkim/{domain}")
}
