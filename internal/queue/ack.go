package queue

import (
	"context"
	"crypto/sha1" // the hash Redis names scripts by, not a protection
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Ack is asynq's acknowledgement of a task, as a part of a script that has Lua among its preludes. The
// handler's result and the end of its task are then written together.
type Ack struct {
	Lua    string   // the function acknowledge(KEYS, ARGV), which is asynq's own script
	Keys   []string // its KEYS
	Values []string // its ARGV
	run    *run
}

// Written notes that the acknowledgement was written. Otherwise asynq writes it when the handler has
// returned.
func (a *Ack) Written() { a.run.written = true }

// Acknowledge tells asynq the verdict that the running handler is about to return, Done or Drop. It returns
// the acknowledgement that asynq makes of it, for the handler to write. asynq waits until the handler has
// returned. Acknowledge returns nil if asynq acknowledges nothing, for example because an operator cancelled
// the task, and if ctx doesn't come from a Server.
func Acknowledge(ctx context.Context, v Verdict) *Ack {
	r, _ := ctx.Value(runKey{}).(*run)
	if r == nil {
		return nil
	}
	r.acks.runs.Store(r.key, r)
	r.verdict <- v.asError()
	select {
	case k := <-r.asked:
		return &Ack{Lua: k.source, Keys: k.keys, Values: k.values(), run: r}
	case <-r.task.Done():
		return nil
	}
}

type runKey struct{}

// run is one run of a handler.
type run struct {
	begun   any // by the pool's Take
	acks    *ackClient
	key     string          // the task's
	task    context.Context // asynq's, which ends with the task
	verdict chan error      // asynq's verdict
	asked   chan call       // the acknowledgement that asynq wants to make
	ended   chan struct{}   // closed when the handler has returned
	written bool            // by the handler
}

func (c *ackClient) newRun(ctx context.Context, key string) *run {
	begun, _ := c.begun.LoadAndDelete(key)
	return &run{begun: begun, acks: c, key: key, task: ctx, verdict: make(chan error, 1),
		asked: make(chan call, 1), ended: make(chan struct{})}
}

// end notes that the handler has returned. asynq may know the verdict already.
func (r *run) end(verdict error) {
	r.acks.runs.Delete(r.key)
	close(r.ended)
	r.verdict <- verdict
}

// runOf returns the handler that asked for the acknowledgement which asynq is about to make; nil if none.
func (c *ackClient) runOf(ctx context.Context, keys []string) *run {
	if _, isAck := ctx.Deadline(); !isAck {
		return nil
	}
	for _, key := range keys {
		if r, ok := c.runs.Load(key); ok {
			return r.(*run)
		}
	}
	return nil
}

// await gives an acknowledgement to the handler, waits until it has returned, and answers asynq. It returns
// nil if the handler did not write it.
func (r *run) await(ctx context.Context, k call) *redis.Cmd {
	select {
	case r.asked <- k:
	default: // one of asynq's repetitions
	}
	select {
	case <-r.ended:
		if !r.written {
			return nil
		}
		return redis.NewCmdResult("OK", nil)
	case <-ctx.Done(): // the lease ends while Redis is unavailable
	case <-r.acks.giveUp:
	}
	return redis.NewCmdResult(nil, context.DeadlineExceeded)
}

// sources are the scripts of asynq that were seen, by their hash.
type sources struct{ known sync.Map }

func (s *sources) of(sha string) (string, bool) {
	source, ok := s.known.Load(sha)
	if !ok {
		return "", false
	}
	return source.(string), true
}

// learn stores a script, in another form if need be.
func (s *sources) learn(source, as string) {
	sum := sha1.Sum([]byte(source))
	s.known.Store(hex.EncodeToString(sum[:]), as)
}

// values returns the arguments as texts.
func (k call) values() []string {
	values := make([]string, len(k.args))
	for i, value := range k.args {
		if raw, ok := value.([]byte); ok {
			value = string(raw)
		}
		values[i] = fmt.Sprint(value)
	}
	return values
}

// function returns a script as a function of its KEYS and ARGV.
func function(name, source string) string {
	return "local function " + name + "(KEYS, ARGV)\n  " +
		strings.ReplaceAll(strings.TrimSpace(source), "\n", "\n  ") + "\nend\n"
}
