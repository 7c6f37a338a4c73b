// Package queue wakes Postroom's workers: it keeps tasks in Redis, hands each to a handler in some process, and brings it back when the
// handler asks for that, or dies. It is the only package that knows asynq; everyone else speaks of tasks and verdicts.
//
// A task is a wake-up, never the truth. What is to be done is written in somebody's record, and the handler looks there first. So
// running a task twice, too early, late or not at all must be harmless to that record; package outbox fences its records, and sweeps.
//
// It promises that
//   - a task whose Enqueue succeeded is handed to a handler at least once, never before its time, unless an operator deletes it;
//   - a handler that has returned is not run again because the acknowledgement met a Redis hiccup;
//   - a task whose worker was killed is handed out again within ten seconds, and that costs it no retry;
//   - nothing it does holds up Redis for more than a few milliseconds, however long the queues are, but for taking a task by name out
//     of the middle of a long waiting list (10 ms in half a million);
//   - the address of a recipient never gets into the error texts that the dashboard shows.
//
// It never decides whether to try again, or how often: the handler's [Verdict] says so, and says when.
//
// # Redis
//
// Queues live under asynq's own keys, asynq:{<queue>}:*, and asynq:queues, asynq:servers:*, asynq:workers:*. One key is ours:
// postroom:{0}:queue:pruned, which keeps the hourly tidying to one process.
//
// # When things fail
//
// Redis away: Enqueue reports the error and the caller's sweeper tries again; workers pause and go on when Redis is back, finishing what
// they have in hand; acknowledgements are repeated for as long as the lease lasts (30 s). Redis full (maxmemory): asynq cannot even
// take tasks off a queue, so nothing moves until there is room; nothing is lost either. A package that accepts work must stop well before
// that. A handler that panics: the task comes back after a growing delay, the stack is logged. A task of a type nobody
// handles: it is buried with an error that says so.
package queue
