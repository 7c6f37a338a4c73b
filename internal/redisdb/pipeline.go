package redisdb

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Pipeline sends several commands in one round trip (in a Cluster: one to each node concerned). It is not
// atomic: each script or command is a separate step. They should not depend on each other's order, because
// a script that the server has forgotten runs last. A Pipeline is used by one goroutine.
type Pipeline struct {
	pipe    redis.Pipeliner
	shared  *Shared
	cluster *redis.ClusterClient // nil for one server
	scripts []scriptCall
	wait    waiting
}

// scriptCall is a script in a pipeline and the command that will hold its reply.
type scriptCall struct {
	script *script
	key    string // the first one, which says where in a Cluster it runs; empty if it has none
	cmd    *redis.Cmd
}

// confirm makes a script that ran fail if its change was not confirmed.
func (c scriptCall) confirm(err error) {
	if own := c.cmd.Err(); err != nil && (own == nil || errors.Is(own, redis.Nil)) {
		c.cmd.SetErr(err)
	}
}

// Pipeline returns an empty pipeline.
func (db *DB) Pipeline() *Pipeline {
	cluster, _ := db.client.(*redis.ClusterClient)
	return &Pipeline{pipe: db.client.Pipeline(), shared: db.shared, cluster: cluster}
}

// Pipeliner returns the pipeline of plain commands; Exec sends them too.
func (p *Pipeline) Pipeliner() redis.Pipeliner { return p.pipe }

// add adds a script. Its reply is in the command after Exec.
func (p *Pipeline) add(s *script, keys []string, args []any) *redis.Cmd {
	call := scriptCall{script: s}
	if len(keys) > 0 {
		call.key = keys[0]
	}
	if p.apart() {
		// Exec's context is the one that counts
		call.cmd = redis.NewCmd(context.Background(), s.call(keys, args)...)
	} else {
		call.cmd = p.pipe.EvalSha(context.Background(), s.sha, keys, args...)
	}
	p.scripts = append(p.scripts, call)
	return call.cmd
}

// apart reports whether scripts are sent separately from plain commands.
func (p *Pipeline) apart() bool { return p.wait.on() && p.cluster != nil }

// Exec sends everything and empties the pipeline for further use. Scripts the server did not know are sent
// again in full, in a second round trip. The result is the first error of any command, redis.Nil apart;
// each command carries its own.
func (p *Pipeline) Exec(ctx context.Context) error {
	scripts := p.scripts
	p.scripts = nil
	if p.pipe.Len() == 0 && len(scripts) == 0 {
		return nil
	}
	if p.wait.on() {
		return p.execReplicated(ctx, scripts)
	}
	cmds, err := p.send(ctx)
	if len(cmds) == 0 && err != nil {
		return err
	}
	resend(ctx, p.pipe, scripts, p.wait)
	labelAll(scripts)
	return firstError(cmds)
}

// sharedMost is the maximum number of commands of a pipeline that shares a round trip with others.
const sharedMost = 8

// send sends the pipeline: a few scripts together with other callers', anything else separately.
func (p *Pipeline) send(ctx context.Context) ([]redis.Cmder, error) {
	cmds := p.pipe.Cmds()
	if len(cmds) > sharedMost {
		return p.pipe.Exec(ctx)
	}
	sent := make([]*redis.Cmd, len(cmds))
	for i, cmd := range cmds {
		if _, ok := cmd.(*redis.Cmd); !ok {
			return p.pipe.Exec(ctx)
		}
		sent[i] = redis.NewCmd(ctx, cmd.Args()...)
	}
	p.pipe.Discard()
	err := p.shared.do(ctx, sent...)
	for i, cmd := range cmds {
		if err != nil {
			cmd.SetErr(err)
			continue
		}
		cmd.(*redis.Cmd).SetVal(sent[i].Val())
		cmd.SetErr(sent[i].Err())
	}
	return cmds, err
}

// execReplicated is Exec with a wait for the replicas.
func (p *Pipeline) execReplicated(ctx context.Context, scripts []scriptCall) error {
	if err := p.wait.admit(ctx); err != nil {
		p.pipe.Discard()
		for _, call := range scripts {
			call.cmd.SetErr(err)
		}
		return err
	}
	if p.cluster != nil {
		p.execOnNodes(ctx, p.cluster, scripts)
		_, err := p.pipe.Exec(ctx)
		labelAll(scripts)
		return errorOf(scripts, err)
	}
	answer := p.wait.append(ctx, p.pipe)
	cmds, _ := p.pipe.Exec(ctx) // each command carries its own error
	if second := resend(ctx, p.pipe, scripts, p.wait); second != nil {
		answer = second
	}
	unconfirmed := p.wait.judge(answer)
	for _, call := range scripts {
		call.confirm(unconfirmed)
	}
	labelAll(scripts)
	if unconfirmed != nil {
		return errorOf(scripts, unconfirmed)
	}
	return firstError(cmds)
}

// resend runs in full the scripts that got NOSCRIPT, and copies their replies to the commands that the
// caller holds. If there is a wait it follows them; its reply is nil if nothing was sent again.
func resend(ctx context.Context, pipe redis.Pipeliner, scripts []scriptCall, wait waiting) (
	confirmed *redis.Cmd) {
	var unknown, again []*redis.Cmd
	for _, call := range scripts {
		if !isNoScript(call.cmd.Err()) {
			continue
		}
		args := slices.Clone(call.cmd.Args()) // evalsha, sha, number of keys, keys…, args…
		args[0], args[1] = "eval", call.script.source
		unknown = append(unknown, call.cmd)
		again = append(again, pipe.Do(ctx, args...))
	}
	if len(again) == 0 {
		return nil
	}
	if wait.on() {
		confirmed = wait.append(ctx, pipe)
	}
	_, _ = pipe.Exec(ctx) // each command below carries its own error
	for i, cmd := range again {
		val, err := cmd.Result()
		unknown[i].SetVal(val)
		unknown[i].SetErr(err)
	}
	return confirmed
}

// labelAll adds the name of each script to its error.
func labelAll(scripts []scriptCall) {
	for _, call := range scripts {
		call.script.label(call.cmd)
	}
}

// errorOf returns the error of the first script that failed, otherwise err.
func errorOf(scripts []scriptCall, err error) error {
	for _, call := range scripts {
		if failed := ignoreNil(call.cmd.Err()); failed != nil {
			return failed
		}
	}
	return ignoreNil(err)
}

// ignoreNil treats an absent value as success.
func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// firstError returns the error of the first command that failed; an absent value is not a failure.
func firstError(cmds []redis.Cmder) error {
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}
