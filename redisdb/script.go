package redisdb

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script that Redis runs as one step. It is made once, at start, and safe for concurrent use.
type Script struct {
	name   string
	source string
	sha    string
}

// NewScript makes a script. The preludes are Lua text put before the source, for functions that several scripts share. The name is for
// error messages.
func NewScript(name, source string, preludes ...string) *Script {
	source = strings.Join(append(slices.Clone(preludes), source), "\n")
	sum := sha1.Sum([]byte(source)) // the name Redis itself gives to a script
	return &Script{name: name, source: source, sha: hex.EncodeToString(sum[:])}
}

// Name is what the script was named when it was made.
func (s *Script) Name() string { return s.name }

// Evaler runs scripts: any client of Redis.
type Evaler interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
}

// Run runs the script by its hash, and in full when the server doesn't know it yet. All keys must be of one partition. An error names
// the script; redis.Nil is passed on as it is. In a pipeline use [Pipeline.Script] instead.
func (s *Script) Run(ctx context.Context, c Evaler, keys []string, args ...any) *redis.Cmd {
	cmd := c.EvalSha(ctx, s.sha, keys, args...)
	if isNoScript(cmd.Err()) {
		cmd = c.Eval(ctx, s.source, keys, args...)
	}
	s.label(cmd)
	return cmd
}

// call is the command that runs the script by its hash.
func (s *Script) call(keys []string, args []any) []any {
	out := make([]any, 0, 3+len(keys)+len(args))
	out = append(out, "evalsha", s.sha, len(keys))
	for _, key := range keys {
		out = append(out, key)
	}
	return append(out, args...)
}

// isNoScript recognises the answer of a server that has not seen the script since it started.
func isNoScript(err error) bool { return err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") }

// label puts the script's name into the error of its command.
func (s *Script) label(cmd *redis.Cmd) {
	if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
		cmd.SetErr(fmt.Errorf("redis script %s: %w", s.name, err))
	}
}
