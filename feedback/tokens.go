package feedback

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// tokens stores tokens that may be used once, for all processes.
type tokens struct {
	keys store
	now  func() time.Time
}

// Bind implements provider.Tokens.
func (t tokens) Bind(ctx context.Context, token, digest string, until time.Time) (string, error) {
	sum := sha256.Sum256([]byte(token))
	return t.keys.bind(ctx, hex.EncodeToString(sum[:]), digest, max(until.Sub(t.now()), time.Minute))
}
