package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// Handler does the work of a task and returns its verdict. The context ends after the grace period of a
// shutdown, when an operator cancels the task, when Redis has been unavailable until the lease is lost (30
// s), or after an hour. After that the task comes back whatever the handler returns, possibly while the
// handler still runs.
// A wait of up to a second and a half belongs in the handler: the queue counts in whole seconds.
type Handler func(ctx context.Context, t Task) Verdict

// Verdict is the result of a task. Its zero value is Done.
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

// String returns the verdict's name: done, retry, bury, drop or not_now.
func (v Verdict) String() string { return outcomes[v.kind] }

// At returns the time of a RetryAt or NotNow; zero for other verdicts.
func (v Verdict) At() time.Time { return v.at }

// Err returns the error of a RetryAt or Bury; nil for other verdicts.
func (v Verdict) Err() error { return v.err }

// Done means that the work is done. The task is removed, or stays visible as completed, depending on
// Options.Keep.
func Done() Verdict { return Verdict{} }

// RetryAt means that the work failed and must be retried, not before the given time, rounded up to a whole
// second. The dashboard shows the error: pass a summary such as "451 4.7.1 greylisted", without addresses or
// secrets. Remaining addresses are masked, and the text is cut at 500 bytes.
func RetryAt(at time.Time, err error) Verdict { return Verdict{kind: retryAt, at: at, err: err} }

// Bury means that the work failed permanently. The task stays visible as archived, with the error, until it
// is deleted or run again. The same rules apply to the error as in RetryAt.
func Bury(err error) Verdict { return Verdict{kind: buried, err: err} }

// Drop means that the task is a stale wake-up with nothing to do. It is removed immediately, even if
// completed tasks are kept.
func Drop() Verdict { return Verdict{kind: dropped} }

// NotNow means that the work has not been tried yet and must be tried at the given time, rounded up to a
// whole second. It does not count as a failure.
func NotNow(until time.Time) Verdict { return Verdict{kind: notNow, at: until} }

// verdictError carries a verdict through asynq, which only has errors: asynq applies errors.Is, IsFailure
// and RetryDelayFunc to it and keeps its text.
type verdictError struct {
	Verdict
}

// asError returns the verdict as an error for asynq.
func (v Verdict) asError() error {
	switch v.kind {
	case done:
		return nil
	case dropped:
		return asynq.RevokeTask
	}
	return &verdictError{v}
}

// Error returns the text that the dashboard shows as the task's last error.
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

// panicError stands for a handler that panicked. The panic value is only logged: it may contain anything.
type panicError struct{ task Task }

func (e *panicError) Error() string {
	return fmt.Sprintf("the handler of %s panicked; the log has the stack", e.task.Type)
}
