package dkim

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/api"
)

// maxParsed bounds the cached keys of accounts; beyond it the cache is emptied.
const maxParsed = 1000

// Signer signs messages, each with its key. It is safe for concurrent use.
type Signer struct {
	keys *Keys

	mu     sync.RWMutex
	parsed map[string]*Key // keys of accounts by their PEM
}

// NewSigner returns a Signer that reads domain keys from keys.
func NewSigner(keys *Keys) *Signer { return &Signer{keys: keys} }

// Owner is the account of a message.
type Owner struct {
	Account string    // its id
	Key     *api.DKIM // its own key, in clear; nil if it has none
	// Owns reports whether the account may use the instance's key of a domain. Nil if it may use none.
	Owns func(domain string) bool
	// Trusted lets any domain's key sign: the message's senders aren't checked (senders.enforce).
	Trusted bool
}

// may reports whether a stored key may sign mail of the owner.
func (o Owner) may(s *Signature) bool {
	if s.account != "" {
		return s.account == o.Account
	}
	return o.Trusted || o.Owns != nil && o.Owns(s.Domain)
}

// Sign returns the message with a signature in front, in new memory, or the same message if there is no key.
// fromDomain is the domain of its first author. at is the time of the signature: each attempt of a message
// gives the same time, and so the same bytes. A nil Signer signs nothing. The package comment describes the
// choice of the key, and the errors.
func (s *Signer) Sign(ctx context.Context, owner Owner, fromDomain string, at time.Time,
	content []byte) ([]byte, error) {
	if s == nil {
		return content, nil
	}
	signature, err := s.choose(ctx, owner, strings.ToLower(fromDomain))
	if err != nil || signature == nil {
		return content, err
	}
	dated := *signature
	dated.Time = at
	return Sign(content, dated)
}

// choose returns the signature of a message; nil if none.
func (s *Signer) choose(ctx context.Context, owner Owner, fromDomain string) (*Signature, error) {
	account := owner.Key
	if account != nil && aligned(account.Domain, fromDomain) {
		return s.ofAccount(account)
	}
	found, err := s.keys.For(ctx, fromDomain)
	if found != nil && !owner.may(found) {
		found = nil
	}
	if err == nil && found == nil && account != nil {
		return s.ofAccount(account)
	}
	return found, err
}

// ofAccount returns the signature of an account's key. Parsed keys are cached.
func (s *Signer) ofAccount(d *api.DKIM) (*Signature, error) {
	s.mu.RLock()
	key := s.parsed[d.PrivateKey]
	s.mu.RUnlock()
	if key == nil {
		var err error
		if key, err = Parse(d.PrivateKey); err != nil {
			return nil, fmt.Errorf("dkim: the account's key for %s %w", d.Domain, err)
		}
		s.keep(d.PrivateKey, key)
	}
	return &Signature{Domain: d.Domain, Selector: d.Selector, Key: key}, nil
}

func (s *Signer) keep(text string, key *Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parsed == nil || len(s.parsed) >= maxParsed {
		s.parsed = map[string]*Key{}
	}
	s.parsed[text] = key
}
