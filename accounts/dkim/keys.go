package dkim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Options are the settings of Keys and Signer. The zero value works.
type Options struct {
	// Now is the clock, for tests. Defaults to time.Now.
	Now func() time.Time
}

// stored is the record of a domain's key.
type stored = records.Record[api.DomainKey]

// Keys stores the keys of domains. It is safe for concurrent use, by any number of processes on one Redis.
type Keys struct {
	store *records.Store[api.DomainKey]
	now   func() time.Time
	ready *redisdb.Cache[*Signature] // by domain of From; nil means no key
}

// NewKeys returns Keys on an open database. It does no I/O.
func NewKeys(db *redisdb.DB, ring *seal.Ring, o Options) (*Keys, error) {
	if db == nil || ring == nil {
		return nil, errors.New("dkim: a database and a key ring are needed")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	k := &Keys{now: o.Now}
	k.store = records.New(db, ring, records.Kind[api.DomainKey]{
		// a domain has a dot, so its key is never the version's
		Key: "dkim", Index: "dkim", Name: "DKIM key", Code: "DomainKeyChanged", Missing: notFound,
		Secrets: func(k *api.DomainKey) []records.Secret {
			return []records.Secret{{Field: "privateKey", Value: &k.PrivateKey}}
		},
	}, records.Options[api.DomainKey]{Forget: func(string) { k.ready.Clear() }, Now: o.Now})
	k.ready = redisdb.NewCache[*Signature](db, k.store.VersionKey(), nil)
	return k, nil
}

// Put stores the key of a domain. It replaces the present one; a masked privateKey keeps that. Invalid names
// every wrong field.
func (k *Keys) Put(ctx context.Context, d api.NewDomainKey) (api.DomainKey, error) {
	var wrong []fault.Field
	d.DKIM, wrong = Check(d.DKIM, true)
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

// published returns a new key with its DNS record, which is empty if the key is masked.
func (k *Keys) published(d api.NewDomainKey) (api.DomainKey, error) {
	next := api.DomainKey{NewDomainKey: d, Created: k.now().UTC().Truncate(time.Millisecond)}
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

// Get returns a domain's key, masked, or NotFound.
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

// List returns all keys, masked, in the order of their domains.
func (k *Keys) List(ctx context.Context) (api.DomainKeyPage, error) {
	p := api.DomainKeyPage{Keys: []api.DomainKey{}}
	err := k.store.Each(ctx, func(r *stored) error {
		p.Keys = append(p.Keys, r.Value)
		return nil
	})
	p.Total = len(p.Keys)
	return p, err
}

// Delete removes a domain's key, or returns NotFound: its mail is not signed any more.
func (k *Keys) Delete(ctx context.Context, domain string) error {
	name, err := CheckDomain(domain)
	if err != nil {
		return notFound(domain)
	}
	return k.store.Delete(ctx, name)
}

// Reseal is [records.Store.Reseal].
func (k *Keys) Reseal(ctx context.Context) (int, error) { return k.store.Reseal(ctx) }

// For returns the signature for mail from a domain: with its own key, or the nearest domain's above it, or
// nil. The signature is at most about a second old. It returns Unavailable if Redis is unreachable.
func (k *Keys) For(ctx context.Context, domain string) (*Signature, error) {
	s, _, err := k.ready.Get(ctx, domain, k.now(), func(ctx context.Context) (*Signature, bool, error) {
		s, err := k.find(ctx, domain)
		return s, err == nil, err // the absence of a key is cached too
	})
	return s, err
}

// find reads the nearest key, ready to sign.
func (k *Keys) find(ctx context.Context, domain string) (*Signature, error) {
	name, err := CheckDomain(domain)
	if err != nil {
		return nil, nil // such as localhost, which has no DNS records
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
	return &Signature{Domain: r.ID, Selector: r.Value.Selector, Key: key, account: r.Value.Account}, nil
}

func notFound(string) error {
	return fault.New(fault.NotFound, "DomainKeyNotFound",
		"No DKIM key is stored for this domain; add it with PUT /v1/dkim/{domain}")
}
