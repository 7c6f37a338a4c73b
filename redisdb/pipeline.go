package redisdb

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Pipeline sends several commands in one round trip (in a Cluster: one to each node concerned). It is not atomic: each script or command
// is a step of its own, and they should not depend on each other's order, because a script the server has forgotten runs last.
// A Pipeline is used by one goroutine.
type Pipeline struct {
	pipe    redis.Pipeliner
	scripts []scriptCall
}

// scriptCall is a script waiting in a pipeline, and the command that will carry its answer.
type scriptCall struct {
	script *Script
	cmd    *redis.Cmd
}

// Pipeline begins an empty pipeline.
func (db *DB) Pipeline() *Pipeline { return &Pipeline{pipe: db.client.Pipeline()} }

// Pipeliner gives access to plain commands; they are sent by Exec too.
func (p *Pipeline) Pipeliner() redis.Pipeliner { return p.pipe }

// Script adds a script. Its answer can be read from the command after Exec.
func (p *Pipeline) Script(s *Script, keys []string, args ...any) *redis.Cmd {
	cmd := p.pipe.EvalSha(context.Background(), s.sha, keys, args...) // nothing is sent here: Exec's context is the one that counts
	p.scripts = append(p.scripts, scriptCall{script: s, cmd: cmd})
	return cmd
}

// Exec sends everything and empties the pipeline for further use. Scripts the server did not know are sent again in full, in a second
// round trip. The result is the first error of any command, redis.Nil apart; each command carries its own.
func (p *Pipeline) Exec(ctx context.Context) error {
	scripts := p.scripts
	p.scripts = nil
	if p.pipe.Len() == 0 {
		return nil
	}
	cmds, err := p.pipe.Exec(ctx)
	if len(cmds) == 0 && err != nil {
		return err
	}
	p.resend(ctx, scripts)
	for _, call := range scripts {
		call.script.label(call.cmd)
	}
	return firstError(cmds)
}

// resend runs in full the scripts that were answered NOSCRIPT, and gives their answers to the commands the caller holds.
func (p *Pipeline) resend(ctx context.Context, scripts []scriptCall) {
	var unknown, again []*redis.Cmd
	for _, call := range scripts {
		if !isNoScript(call.cmd.Err()) {
			continue
		}
		args := slices.Clone(call.cmd.Args()) // evalsha, sha, number of keys, keys…, args…
		args[0], args[1] = "eval", call.script.source
		unknown = append(unknown, call.cmd)
		again = append(again, p.pipe.Do(ctx, args...))
	}
	if len(again) == 0 {
		return
	}
	_, _ = p.pipe.Exec(ctx) // each command below carries its own error
	for i, cmd := range again {
		val, err := cmd.Result()
		unknown[i].SetVal(val)
		unknown[i].SetErr(err)
	}
}

// firstError finds the first command that failed; an absent value is not a failure.
func firstError(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}
