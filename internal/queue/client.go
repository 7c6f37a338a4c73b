package queue

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
)

// Options are the settings of a Client. The zero value works.
type Options struct {
	// Keep returns how many completed tasks of a queue stay visible, for keepFor at most. It is called for every
	// task, so it must not do I/O. Servers remove the oldest and should be given the same function. If nil, none
	// stay.
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
	options    []asynq.Option // shared by all tasks
	keep       func(queue string) int
	forms      sync.Map     // Form by formKey
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
	answers := make([]*redis.Cmd, len(tasks))
	pipe := c.redis.Pipeline()
	c.register(ctx, pipe, tasks)
	for i, t := range tasks {
		k, err := c.compose(ctx, t)
		if errs[i] = err; err == nil {
			// With its source: so it works on a Redis that was just restarted or promoted. BenchmarkScript measures
			// the cost: 1.5 µs on top of 7 for each task.
			answers[i] = pipe.Eval(ctx, k.source, k.keys, k.args...)
		}
	}
	if pipe.Len() == 0 {
		return errs
	}
	_, failed := pipe.Exec(ctx)
	for i := range tasks {
		if errs[i] == nil {
			errs[i] = enqueued(tasks[i], answers[i], failed)
		}
	}
	return errs
}

// Step is the enqueueing of one task, as a part of a script that has [StepLua] among its preludes: the record
// and its task are then written together.
type Step struct {
	Name   string    // the function's in StepLua
	Keys   [2]string // its KEYS
	Values [3]string // its ARGV
}

// Step returns the enqueueing of a task. It returns an error if the task cannot be enqueued at all.
func (c *Client) Step(ctx context.Context, t Task) (Step, error) {
	k, err := c.compose(ctx, t)
	if err != nil {
		return Step{}, err
	}
	s := Step{Name: stepNow, Keys: [2]string(k.keys)}
	if !isPending(k.keys[1]) {
		s.Name = stepLater
	}
	s.Values = [3]string(k.values())
	return s, nil
}

// Form is what the tasks of one type in one queue have in common, for a script that has [StepLua] among its
// preludes. Its function enqueue_form enqueues a task that is due and whose ID only the script knows. Its
// arguments are the fields of a Form, in order, as one table, and the ID.
type Form struct {
	Tasks, Prefix string // the queue's key, and the beginning of a task's
	Head, Tail    string // a task as asynq stores it, before and after its ID and the ID's length
	Now           string
}

// formID stands for the ID in the making of a form.
const formID = "the-id-of-the-task"

// Form returns the form of a type's tasks in a queue.
func (c *Client) Form(ctx context.Context, queue, typ string) (Form, error) {
	key := formKey{queue, typ, c.keep(queue) > 0}
	known, ok := c.forms.Load(key)
	if !ok {
		s, err := c.Step(ctx, Task{Queue: queue, Type: typ, ID: formID})
		if err != nil {
			return Form{}, err
		}
		f := Form{Tasks: s.Keys[1], Prefix: strings.TrimSuffix(s.Keys[0], formID)}
		f.Head, f.Tail, _ = strings.Cut(s.Values[0], string(rune(len(formID)))+formID)
		known, _ = c.forms.LoadOrStore(key, f)
	}
	f := known.(Form)
	f.Now = strconv.FormatInt(time.Now().UnixNano(), 10)
	return f, nil
}

// formKey is what a form depends on.
type formKey struct {
	queue, typ string
	keeps      bool
}

// formLua makes a task of a form. The ID is shorter than 128 bytes, so that its length is one byte.
const formLua = `local function enqueue_form(form, id)
  return enqueue_now({form[2] .. id, form[1]}, {form[3] .. string.char(#id) .. id .. form[4], id, form[5]})
end
`

// The functions of StepLua.
const (
	stepNow   = "enqueue_now"
	stepLater = "enqueue_later"
)

// StepLua has asynq's own scripts for enqueueing as functions of their KEYS and ARGV: enqueue_now for a task
// that is due, enqueue_later for one that is not. Its enqueue_form is for a [Form].
var StepLua = func() string {
	lua, c := "", NewClient(nil, Options{})
	for _, name := range []string{stepNow, stepLater} {
		t := Task{Queue: Submit, Type: "x", ID: "x"}
		if name == stepLater {
			t.At = time.Now().Add(time.Hour)
		}
		k, err := c.compose(context.Background(), t)
		if err != nil {
			panic(err) // asynq would need Redis for it: TestCaptureSeesOneScriptCall
		}
		lua += function(name, k.source)
	}
	return lua + formLua
}()

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

// enqueued returns the error of an enqueueing. A pipeline that failed as a whole may leave a command without
// a reply; then failed is used.
func enqueued(t Task, answer *redis.Cmd, failed error) error {
	err := answer.Err()
	if err == nil && answer.Val() == nil {
		if err = failed; err == nil {
			err = errNotExecuted
		}
	}
	if err != nil {
		return fmt.Errorf("enqueue task %s in queue %s: %w", t.ID, t.Queue, err)
	}
	return nil
}
