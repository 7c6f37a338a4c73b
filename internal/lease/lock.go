package lease

import (
	"context"
	"embed"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var (
	claimScript   = redisdb.NewScript[claimArgs, bool]("lease/claim", redisdb.Source(lua, "lua/claim.lua"))
	releaseScript = redisdb.NewScript[releaseArgs, bool]("lease/release", redisdb.Source(lua, "lua/release.lua"))
)

type (
	claimArgs struct {
		Holder string
		Length int64 // ms
	}
	releaseArgs struct{ Holder string }
)

// Lock is a lease of one thing, in its own key. Its holder renews it by claiming it again.
type Lock struct {
	Client      redisdb.Evaler
	Key, Holder string
	Length      time.Duration
}

// Claim takes the lock or makes it longer, and reports whether the holder has it.
func (l Lock) Claim(ctx context.Context) (bool, error) {
	ours, err := claimScript.Run(ctx, l.Client, []string{l.Key}, claimArgs{l.Holder, l.Length.Milliseconds()})
	return ours, redisdb.Failed(err, "claim %s", l.Key)
}

// Release gives the lock up, if the holder has it, even while the process stops. If Redis does not answer
// within a second, the lock ends automatically.
func (l Lock) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, err := releaseScript.Run(ctx, l.Client, []string{l.Key}, releaseArgs{l.Holder})
	return redisdb.Failed(err, "release %s", l.Key)
}
