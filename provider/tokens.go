package provider

import (
	"context"
	"sync"
	"time"
)

// Tokens remembers which event a token came with that may be used only once; feedback keeps that in Redis, so that all processes know.
// Bind ties the token to the digest of an event until the given time, and answers the digest that it is tied to: that of the first call. The
// same event repeated is no replay: the provider didn't hear our answer.
type Tokens interface {
	Bind(ctx context.Context, token, digest string, until time.Time) (bound string, err error)
}

const tokensKept = 20_000

// tokenMemory is Tokens for one process: two generations of a map, so that forgetting costs nothing. What is in neither is forgotten early
// under a flood of tokens, each of which had a valid signature.
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
