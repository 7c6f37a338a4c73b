package outbox

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Lookup finds messages by what others call them: their Message-ID, in angle brackets, where it does not tell
// their id itself (MessageOf), or what package provider's Reference makes of a provider's id. They are in the
// order of the references, and "" where nothing is known. A reference is known from when a relay took the
// message, for Options.KeepReferences.
func (fs *Facts) Lookup(ctx context.Context, references []string) ([]string, error) {
	pipe := fs.DB.Client().Pipeline()
	found := make([][]*redis.StringCmd, len(references))
	for i, reference := range references {
		for p := range fs.DB.Partitions() {
			found[i] = append(found[i], pipe.Get(ctx, fs.keys.reference(p, referenceHash(reference))))
		}
	}
	if err := execRead(ctx, pipe); err != nil && len(references) > 0 {
		return nil, away(err, "look up messages by what others call them")
	}
	ids := make([]string, len(references))
	for i, all := range found {
		for _, cmd := range all {
			if id := cmd.Val(); id != "" {
				ids[i] = id
			}
		}
	}
	return ids, nil
}
