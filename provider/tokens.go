package provider

import (
	"context"
	"sync"
	"time"
)

// Tokens binds single-use tokens to events. Package feedback keeps them in Redis, for all processes. Bind
// binds the token to the digest of an event until the given time, and returns the digest of the first call.
// The same event again is no replay: our answer was lost.
type Tokens interface {
	Bind(ctx context.Context, token, digest string, until time.Time) (bound string, err error)
}

const tokensKept = 20_000

// tokenMemory is Tokens for one process: two generations of a map, so that expiry costs nothing. A flood of
// tokens, all with valid signatures, expires older ones early.
type tokenMemory struct {
	mu         sync.Mutex
	young, old map[string]string
}

func newTokenMemory() *tokenMemory { return &tokenMemory{young: map[string]string{}} }

func (m *tokenMemory) Bind(_ context.Context, token, digest string, _ time.Time) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bound, ok := m.young[token]; ok {
		return bound, nil
	}
	if bound, ok := m.old[token]; ok {
		return bound, nil
	}
	if len(m.young) >= tokensKept/2 {
		m.young, m.old = map[string]string{}, m.young
	}
	m.young[token] = digest
	return digest, nil
}
