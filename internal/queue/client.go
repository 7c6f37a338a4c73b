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
	// Keep returns how many completed tasks of a queue stay visible, for keepFor at most. It is called for
	// every task, so it must not do I/O. Servers remove the oldest and should be given the same function.
	// Nil: none stay.
	Keep func(queue string) int
}

// keepFor is the longest time that a completed task stays visible.
const keepFor = 24 * time.Hour

// taskTimeout is how long a handler may run before its task is run again concurrently. It is far longer
// than any delivery: a handler limits its own work, and a timeout here would run one task twice at a time.
const taskTimeout = time.Hour

// registerEvery is the interval at which an enqueueing Client registers its queues again.
const registerEvery = 10 * time.Second

// Client puts tasks into queues. It is safe for concurrent use.
type Client struct {
	redis      redis.UniversalClient
	capture    *capture
	producer   *asynq.Client
	options    []asynq.Option // those that all tasks share
	keep       func(queue string) int
	registered atomic.Int64 // when Enqueue last registered queues, in Unix seconds
}

// NewClient returns a Client that uses the given connection and never closes it.
func NewClient(c redis.UniversalClient, o Options) *Client {
	catch := &capture{UniversalClient: c}
	return &Client{
		redis:    c,
		capture:  catch,
		producer: asynq.NewClientFromRedisClient(catch),
		keep:     orNone(o.Keep),
		options: []asynq.Option{
			// The handler counts attempts. asynq archives a task with no retries left even if the handler
			// only returned NotNow.
			asynq.MaxRetry(math.MaxInt32),
			asynq.Timeout(taskTimeout),
		},
	}
}

func orNone(keep func(string) int) func(string) int {
	if keep == nil {
		return func(string) int { return 0 }
	}
	return keep
}

// Enqueue puts the tasks into their queues in one round trip. It returns one error for each, in order, nil
// if the task is in the queue. A task whose ID is already in its queue, in any state, counts as enqueued:
// after a timeout a caller cannot know and has to repeat the call. After an error the task may be in the
// queue nevertheless.
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

// Append adds the enqueueing of one task to a pipeline, as exactly one command. The result is known after
// the pipeline was executed. The error is that of a task that cannot be enqueued at all; then nothing was
// added.
// The command contains its script (EVAL). So it works on a Redis that was just restarted or promoted, in
// pipelines without a NOSCRIPT fallback. BenchmarkScript measures the cost: 1.5 µs on top of 7 for each
// task.
func (c *Client) Append(ctx context.Context, p redis.Pipeliner, t Task) (Pending, error) {
	k, err := c.compose(ctx, t)
	if err != nil {
		return Pending{}, err
	}
	return Pending{task: t.ID, queue: t.Queue, cmd: p.Eval(ctx, k.source, k.keys, k.args...)}, nil
}

// compose returns the script call with which asynq enqueues the task.
func (c *Client) compose(ctx context.Context, t Task) (call, error) {
	if err := t.check(); err != nil {
		return call{}, err
	}
	opts := make([]asynq.Option, 0, len(c.options)+4)
	opts = append(opts, c.options...)
	opts = append(opts, asynq.TaskID(t.ID), asynq.Queue(t.Queue))
	if c.keep(t.Queue) > 0 {
		opts = append(opts, asynq.Retention(keepFor))
	}
	if !t.At.IsZero() {
		opts = append(opts, asynq.ProcessAt(roundUp(t.At)))
	}
	var k call
	if _, err := c.producer.EnqueueContext(c.capture.into(ctx, &k), asynq.NewTask(t.Type, t.Payload),
		opts...); err != nil {
		return call{}, fmt.Errorf("compose task %s for queue %s: %w", t.ID, t.Queue, err)
	}
	return k, nil
}

// register adds the queues of the tasks to asynq's list of queues at intervals. The dashboard shows that
// list, and it may have been flushed.
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

// Pending is the result of an enqueue in a pipeline. It is unknown until the pipeline was executed.
type Pending struct {
	task, queue string
	cmd         *redis.Cmd
}

// Err returns nil after the pipeline was executed if the task is in its queue, also if the ID was there
// before.
func (p Pending) Err() error { return p.result(nil) }

// result returns the error of the reply. A pipeline that failed as a whole may leave a command without a
// reply; then failed is used.
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
