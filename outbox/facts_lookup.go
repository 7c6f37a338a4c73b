package outbox

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Lookup finds messages by reference: a Message-ID in angle brackets that Postroom did not make (see MessageOf),
// or the Reference that package provider makes of a provider's id. It returns their ids in the order of the
// references, "" for an unknown one. A reference is stored when a relay accepts the message, for
// Options.KeepReferences.
func (fs *Facts) Lookup(ctx context.Context, references []string) ([]string, error) {
	pipe := fs.DB.Client().Pipeline()
	found := make([][]*redis.StringCmd, len(references))
	for i, reference := range references {
		for p := range fs.DB.Partitions() {
			found[i] = append(found[i], pipe.Get(ctx, fs.keys.reference(p, referenceHash(reference))))
		}
	}
	if err := execRead(ctx, pipe); err != nil && len(references) > 0 {
		return nil, redisError(err, "look up messages by reference")
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
