package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// Handler does the work a task wakes it for and says what is to become of the task. The context ends when the process shuts down and the grace is
// over, when an operator cancels the task, when Redis has been away for so long that the lease is lost (30 s), or after an hour.
// After that the task comes back whatever the handler returns, possibly while the handler still runs.
//
// A wait of up to a second and a half belongs into the handler: the queue counts in whole seconds.
type Handler func(ctx context.Context, t Task) Verdict

// Verdict is what is to become of a task. Its zero value is Done.
type Verdict struct {
	kind outcome
	at   time.Time
	err  error
}

type outcome int

const (
	done outcome = iota
	retryAt
	buried
	dropped
	notNow
)

// outcomes names every outcome, as metrics and logs do.
var outcomes = [...]string{done: "done", retryAt: "retry", buried: "bury", dropped: "drop", notNow: "not_now"}

// String names the verdict: done, retry, bury, drop or not_now.
func (v Verdict) String() string { return outcomes[v.kind] }

// At is the time that RetryAt or NotNow was given; zero for other verdicts.
func (v Verdict) At() time.Time { return v.at }

// Err is the error that RetryAt or Bury was given; nil for other verdicts.
func (v Verdict) Err() error { return v.err }

// Done says that the work is done. The task goes away, or stays visible as completed, as Options.Keep says.
func Done() Verdict { return Verdict{} }

// RetryAt says that the work failed and is to be tried again, not before the given time, rounded up to a whole second. The error is
// shown in the dashboard: let it be a summary such as "451 4.7.1 greylisted", without addresses or secrets. Addresses that slip in are
// masked, and the text is cut at 500 bytes.
func RetryAt(at time.Time, err error) Verdict { return Verdict{kind: retryAt, at: at, err: err} }

// Bury says that the work failed for good. The task stays visible as archived, with the error, until it is deleted or run again. What
// RetryAt says of the error goes for this one too.
func Bury(err error) Verdict { return Verdict{kind: buried, err: err} }

// Drop says that there is nothing to do for this task: a stale wake-up. It goes away at once, even where completed tasks are kept.
func Drop() Verdict { return Verdict{kind: dropped} }

// NotNow says that the work has not been tried yet, and is to be at the given time, rounded up to a whole second. It does not count as
// a failure.
func NotNow(until time.Time) Verdict { return Verdict{kind: notNow, at: until} }

// verdictError carries a verdict through asynq, which knows only errors: it asks errors.Is, IsFailure and RetryDelayFunc about it and
// keeps its text.
type verdictError struct {
	Verdict
}

// asError puts the verdict in asynq's terms.
func (v Verdict) asError() error {
	switch v.kind {
	case done:
		return nil
	case dropped:
		return asynq.RevokeTask
	}
	return &verdictError{v}
}

// Error is what the dashboard shows as the task's last error.
func (e *verdictError) Error() string {
	if e.err != nil {
		return safeText(e.err.Error())
	}
	if e.kind == notNow {
		return "not now: waits until " + e.at.UTC().Format(time.RFC3339)
	}
	return "failed, and no reason was given"
}

// Is makes asynq archive a buried task instead of retrying it.
func (e *verdictError) Is(target error) bool { return e.kind == buried && target == asynq.SkipRetry }

// panicError stands for a handler that panicked. What it panicked with stays in the log: it may hold anything.
type panicError struct{ task Task }

func (e *panicError) Error() string {
	return fmt.Sprintf("the handler of %s panicked; the log has the stack", e.task.Type)
}
