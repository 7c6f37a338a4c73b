package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hibiken/asynq"
)

// process is the function that asynq calls for each task. It returns when the handler has returned, or has
// given asynq its verdict.
func (s *Server) process(ctx context.Context, at *asynq.Task) error {
	t := Task{Type: at.Type(), Payload: at.Payload()}
	t.ID, _ = asynq.GetTaskID(ctx)
	t.Queue, _ = asynq.GetQueueName(ctx)
	r := s.acks.newRun(ctx, taskKey(t.Queue, t.ID))
	s.running.Add(1)
	s.hands.do(func() {
		defer s.running.Done()
		ctx, cancel := context.WithCancel(context.WithValue(ctx, runKey{}, r))
		defer cancel()
		unlink := context.AfterFunc(s.closing, cancel)
		defer unlink()
		r.end(s.handle(ctx, t))
	})
	return <-r.verdict
}

// handle calls the handler of the task's type, and returns its verdict for asynq.
func (s *Server) handle(ctx context.Context, t Task) error {
	began := time.Now()
	v, panicked := s.call(ctx, t)
	if panicked {
		s.metrics.observe(t.Type, "panic", time.Since(began))
		return &panicError{t}
	}
	s.metrics.observe(t.Type, v.String(), time.Since(began))
	return v.asError()
}

// call calls the handler of the task's type, and recovers from its panics.
func (s *Server) call(ctx context.Context, t Task) (v Verdict, panicked bool) {
	handler := s.handlers[t.Type]
	if handler == nil {
		s.log.Error("no handler for task", "queue", t.Queue, "task_type", t.Type, "task_id", t.ID)
		return Bury(fmt.Errorf("no handler for tasks of type %q in this version", t.Type)), false
	}
	defer func() {
		if x := recover(); x != nil {
			s.log.Error("task handler panicked", "queue", t.Queue, "task_type", t.Type, "task_id", t.ID,
				"panic", x, "stack", string(debug.Stack()))
			panicked = true
		}
	}()
	return handler(ctx, t), false
}

// isFailure reports whether an error counts as a failure of its task and queue: verdicts of failure,
// panics, and handlers that took an hour. A task that lost its worker or was cancelled by an operator has
// not failed.
func isFailure(err error) bool {
	if v, ok := errors.AsType[*verdictError](err); ok {
		return v.kind != notNow
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// besideDelay is the delay of a task whose handler was cancelled or timed out. The handler may still be
// running and needs time to notice.
const besideDelay = 5 * time.Second

// retryDelay returns when a task comes back; failures is the number of its earlier failures.
func retryDelay(failures int, err error, _ *asynq.Task) time.Duration {
	if v, ok := errors.AsType[*verdictError](err); ok {
		return max(0, time.Until(roundUp(v.at)))
	}
	if _, ok := errors.AsType[*panicError](err); ok {
		return Backoff{Base: 5 * time.Second, Max: 10 * time.Minute}.Delay(failures+2, 0.5)
	}
	if errors.Is(err, asynq.ErrLeaseExpired) {
		return 0
	}
	return besideDelay
}
