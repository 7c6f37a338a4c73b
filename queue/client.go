package queue

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Options are the settings of a Client. The zero value works.
type Options struct {
	// Keep says how many done tasks of a queue stay visible, for keepFor at most. It is asked for every task, so it answers from memory;
	// the oldest are taken away by Servers, which should be given the same function. Nil: none stay.
	Keep func() int
}

// keepFor is how long a done task stays visible at most.
const keepFor = 24 * time.Hour

// taskTimeout is how long a handler may take before the task comes back beside it. It is far beyond any delivery: a handler
// bounds its own work, and a timeout here would run one task twice at a time.
const taskTimeout = time.Hour

// registerEvery is how often a Client that enqueues repeats the registration of its queues.
const registerEvery = 10 * time.Second

// Client puts tasks into queues. It is safe for concurrent use.
type Client struct {
	redis      redis.UniversalClient
	capture    *capture
	producer   *asynq.Client
	options    []asynq.Option // those that all tasks share
	keep       func() int
	registered atomic.Int64 // when Enqueue last registered queues, in Unix seconds
}

// NewClient makes a Client that uses the given connection and never closes it.
func NewClient(c redis.UniversalClient, o Options) *Client {
	catch := &capture{UniversalClient: c}
	return &Client{
		redis:    c,
		capture:  catch,
		producer: asynq.NewClientFromRedisClient(catch),
		keep:     orNone(o.Keep),
		options: []asynq.Option{
			// The handler counts attempts. asynq archives a task with no retries left even if the handler only answered "not now".
			asynq.MaxRetry(math.MaxInt32),
			asynq.Timeout(taskTimeout),
		},
	}
}

func orNone(keep func() int) func() int {
	if keep == nil {
		return func() int { return 0 }
	}
	return keep
}

// Enqueue puts the tasks into their queues in one round trip and gives one error for each, in order, nil where the task is in the queue. A
// task whose ID is in its queue already, in whatever state, counts as enqueued: after a timeout a caller cannot know
// and has to ask again. After an error the task may nevertheless be there.
func (c *Client) Enqueue(ctx context.Context, tasks ...Task) []error {
	errs := make([]error, len(tasks))
	pending := make([]Pending, len(tasks))
	pipe := c.redis.Pipeline()
	c.register(ctx, pipe, tasks)
	for i, t := range tasks {
		pending[i], errs[i] = c.Append(ctx, pipe, t)
	}
	if pipe.Len() == 0 {
		return errs
	}
	_, failed := pipe.Exec(ctx)
	for i := range tasks {
		if errs[i] == nil {
			errs[i] = pending[i].result(failed)
		}
	}
	return errs
}

// Append adds the enqueueing of one task to somebody else's pipeline, as exactly one command. The result is known once the pipeline
// was executed. The error is that of a task that cannot be enqueued at all; nothing was added then.
//
// The command carries its script along (EVAL), so it works on a Redis that has just been restarted or promoted, in pipelines that know
// of no falling back. BenchmarkScript says what that costs: 1.5 µs on top of 7 for each task.
func (c *Client) Append(ctx context.Context, p redis.Pipeliner, t Task) (Pending, error) {
	k, err := c.compose(ctx, t)
	if err != nil {
		return Pending{}, err
	}
	return Pending{task: t.ID, queue: t.Queue, cmd: p.Eval(ctx, k.source, k.keys, k.args...)}, nil
}

// compose has asynq make the script call that enqueues the task.
func (c *Client) compose(ctx context.Context, t Task) (call, error) {
	if err := t.check(); err != nil {
		return call{}, err
	}
	opts := make([]asynq.Option, 0, len(c.options)+4)
	opts = append(opts, c.options...)
	opts = append(opts, asynq.TaskID(t.ID), asynq.Queue(t.Queue))
	if c.keep() > 0 {
		opts = append(opts, asynq.Retention(keepFor))
	}
	if !t.At.IsZero() {
		opts = append(opts, asynq.ProcessAt(roundUp(t.At)))
	}
	var k call
	if _, err := c.producer.EnqueueContext(c.capture.into(ctx, &k), asynq.NewTask(t.Type, t.Payload), opts...); err != nil {
		return call{}, fmt.Errorf("compose task %s for queue %s: %w", t.ID, t.Queue, err)
	}
	return k, nil
}

// register adds the queues of the tasks to asynq's list of queues, once in a while: the list is what the dashboard shows, and it may
// have been flushed.
func (c *Client) register(ctx context.Context, p redis.Pipeliner, tasks []Task) {
	now, last := time.Now().Unix(), c.registered.Load()
	if now-last < int64(registerEvery/time.Second) || !c.registered.CompareAndSwap(last, now) {
		return
	}
	for i, t := range tasks {
		if i == 0 || t.Queue != tasks[i-1].Queue {
			p.SAdd(ctx, allQueuesKey, t.Queue)
		}
	}
}

// Pending is the outcome of an enqueue in a pipeline: unknown until the pipeline was executed.
type Pending struct {
	task, queue string
	cmd         *redis.Cmd
}

// Err says, after the pipeline was executed, whether the task is in its queue. It is nil as well when the ID was there before.
func (p Pending) Err() error { return p.result(nil) }

// Existed says, after the pipeline was executed, whether the ID was in the queue before, in whatever state.
func (p Pending) Existed() bool {
	if p.cmd == nil || p.cmd.Err() != nil {
		return false
	}
	n, ok := p.cmd.Val().(int64)
	return ok && n == 0
}

// result judges the answer. A pipeline that failed as a whole may leave a command without any answer of its own; failed speaks for it.
func (p Pending) result(failed error) error {
	err := p.cmd.Err()
	if err == nil && p.cmd.Val() == nil {
		if err = failed; err == nil {
			err = errNotExecuted
		}
	}
	if err != nil {
		return fmt.Errorf("enqueue task %s in queue %s: %w", p.task, p.queue, err)
	}
	return nil
}
