package redisdb

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// RawScript is a script with arguments by position. It goes when the last of them has names.
type RawScript struct{ *script }

// NewRawScript returns a script with arguments by position.
func NewRawScript(name, source string, preludes ...string) *RawScript {
	return &RawScript{newScript(name, needed(strings.Join(preludes, "\n")+"\n", source)+source)}
}

// Run runs the script.
func (s *RawScript) Run(ctx context.Context, c Evaler, keys []string, args ...any) *redis.Cmd {
	return s.run(ctx, c, keys, args)
}

// Script adds a script.
func (p *Pipeline) Script(s *RawScript, keys []string, args ...any) *redis.Cmd {
	return p.add(s.script, keys, args)
}

// RunReplicated is Run with the guarantee of ReplicatedPipeline.
func (db *DB) RunReplicated(ctx context.Context, s *RawScript, keys []string, args ...any) *redis.Cmd {
	if db.wait.replicas == 0 {
		return s.Run(ctx, db.shared, keys, args...)
	}
	p := db.ReplicatedPipeline()
	cmd := p.Script(s, keys, args...)
	if err := p.Exec(ctx); err != nil && cmd.Err() == nil {
		cmd.SetErr(err)
	}
	return cmd
}
