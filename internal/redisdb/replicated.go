package redisdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
)

// ReplicatedPipeline is [DB.Pipeline] for changes that must survive the loss of the master: Exec returns
// when Options.WaitReplicas replicas have what its scripts wrote. Without that option it is an ordinary
// pipeline.
//
// If too few replicas are connected, nothing is sent, and Exec fails with the code TooFewReplicas. If they do
// not confirm within Options.WaitTimeout, Exec and the scripts' commands fail with the code NotReplicated.
// The master has then applied everything, and it will be lost only if the master is lost in the next moments.
// Both are of kind fault.Unavailable.
//
// Redis confirms the last write of the connection. A script that finds its work already done, but must not
// succeed before the replicas have it, therefore writes something anyway.
func (db *DB) ReplicatedPipeline() *Pipeline {
	p := db.Pipeline()
	p.wait = db.wait
	p.wait.db = db
	return p
}

// waiting is the number of replicas to wait for, and how long. The zero value waits for none.
type waiting struct {
	replicas int
	timeout  time.Duration
	db       *DB // whose; nil where nothing is waited for
}

// on reports whether there is anything to wait for.
func (w waiting) on() bool { return w.replicas > 0 && w.db != nil }

// append adds the wait to a pipeline, for everything before it.
func (w waiting) append(ctx context.Context, pipe redis.Pipeliner) *redis.Cmd {
	return pipe.Do(ctx, "wait", w.replicas, w.timeout.Milliseconds())
}

// judge checks the reply to the wait.
func (w waiting) judge(answer *redis.Cmd) error {
	n, err := answer.Int()
	if err == nil && n >= w.replicas {
		return nil
	}
	cause := fmt.Errorf("%d of %d replicas confirmed within %s", n, w.replicas, w.timeout)
	if err != nil {
		cause = fmt.Errorf("no replica confirmed: %v", err) // not wrapped: to callers all of this is one error
	}
	f := fault.Wrap(cause, fault.Unavailable, "NotReplicated",
		"The request was stored and will probably take effect, but replicas didn't confirm it in time. "+
			"Repeat it with the same idempotency key")
	f.RetryAfter = time.Second
	return f
}

// admit refuses writes that could not be confirmed anyway. A sender repeats a message that was stored and
// then refused, and without an idempotency key it would be sent twice.
func (w waiting) admit(ctx context.Context) error {
	h, err := w.db.health(ctx)
	if err != nil {
		return err
	}
	if h.replicas >= w.replicas {
		return nil
	}
	f := fault.Wrap(fmt.Errorf("%d of %d replicas are connected", h.replicas, w.replicas), fault.Unavailable,
		"TooFewReplicas",
		"Redis has too few replicas, so nothing was stored. Try again shortly")
	f.RetryAfter = time.Second
	return f
}

// goodLag is how long a replica may be silent and still count, as in Redis' min-replicas-max-lag.
const goodLag = 10

// goodReplicas counts the up-to-date replicas of a master from its INFO:
// "slave0:ip=…,port=…,state=online,offset=…,lag=0". A replica without such details counts.
func goodReplicas(info map[string]string) int {
	connected := int(number(info, "connected_slaves"))
	n := connected
	for i := range connected {
		about := make(map[string]string)
		for field := range strings.SplitSeq(info[fmt.Sprintf("slave%d", i)], ",") {
			name, value, _ := strings.Cut(field, "=")
			about[name] = value
		}
		if state, known := about["state"]; known && state != "online" || number(about, "lag") > goodLag {
			n--
		}
	}
	return n
}

// maxRedirects is how often a script is sent to another node of a Cluster, as go-redis does for commands.
const maxRedirects = 3

// execOnNodes sends the scripts of a replicated pipeline in a Cluster, each to the node that has its keys. So
// the wait follows on the same connection: only the node that took a write can say who has it. A Cluster's
// own pipeline would send the wait anywhere.
func (p *Pipeline) execOnNodes(ctx context.Context, cluster *redis.ClusterClient, scripts []scriptCall) {
	wait := minRetryBackoff
	for try := 0; ; try++ {
		var again []scriptCall
		for node, calls := range nodesOf(ctx, cluster, scripts) {
			again = append(again, p.execOnNode(ctx, node, calls)...)
		}
		if len(again) == 0 || try == maxRedirects || !Pause(ctx, wait) {
			return
		}
		cluster.ReloadState(ctx)
		scripts, wait = again, min(2*wait, maxRetryBackoff)
	}
}

// nodesOf groups scripts by the node that serves their keys. Those without a known node fail.
func nodesOf(ctx context.Context, cluster *redis.ClusterClient,
	scripts []scriptCall) map[*redis.Client][]scriptCall {
	nodes := make(map[*redis.Client][]scriptCall, 1)
	for _, call := range scripts {
		node, err := cluster.MasterForKey(ctx, call.key)
		if err != nil {
			call.cmd.SetErr(err)
			continue
		}
		nodes[node] = append(nodes[node], call)
	}
	return nodes
}

// execOnNode sends scripts to one node, and returns scripts that belong to another node.
func (p *Pipeline) execOnNode(ctx context.Context, node *redis.Client, calls []scriptCall) (
	again []scriptCall) {
	pipe := node.Pipeline()
	for _, call := range calls {
		call.cmd.SetErr(nil)
		_ = pipe.Process(ctx, call.cmd) // only queues it
	}
	answer := p.wait.append(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command carries its own error
	if second := resend(ctx, pipe, calls, p.wait); second != nil {
		answer = second
	}
	err := p.wait.judge(answer)
	for _, call := range calls {
		if misplaced(call.cmd.Err()) {
			again = append(again, call)
			continue
		}
		call.confirm(err)
	}
	return again
}

// misplaced recognizes the error of a node that does not, or no longer, serve the keys, and of one that is
// gone.
func misplaced(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, context.Canceled) {
		return false
	}
	return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || Unavailable(err)
}
