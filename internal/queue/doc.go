// Package queue wakes Postroom's workers: it keeps tasks in Redis, gives each to a handler in some process,
// and runs it again if the handler asks for that, or dies. It is the only package that uses asynq; all
// others use tasks and verdicts.
//
// A task is a wake-up, not the record of the work. The work is recorded elsewhere, and the handler reads
// that record first. So running a task twice, too early, late or not at all must not harm the record.
// Package outbox fences its records, and sweeps.
//
// It promises that
//   - a task whose Enqueue succeeded runs at least once, never before its time, unless an operator deletes
//     it;
//   - a handler that has returned is not run again because of a short Redis failure during the
//     acknowledgement;
//   - a task whose worker was killed runs again within ten seconds, without counting as a retry;
//   - it never blocks Redis for more than a few milliseconds, however long the queues are. The exception is
//     taking a task by name out of the middle of a long waiting list (10 ms in half a million);
//   - the error texts in the dashboard never contain the address of a recipient.
//
// It never decides whether, when or how often to retry. The handler's [Verdict] does.
//
// # Redis
//
// Queues use asynq's own keys, asynq:{<queue>}:*, asynq:queues, asynq:servers:*, asynq:workers:*. This
// package owns postroom:{0}:queue:pruned:* and postroom:{0}:queue:recovered:*, which restrict the hourly
// cleanup and the look for lost tasks to one process.
//
// # When things fail
//
// Redis is unavailable: Enqueue returns the error and the caller's sweeper tries again. Workers finish
// their tasks, pause, and continue when Redis is back. Acknowledgements are repeated until the lease ends
// (30 s).
// Redis is full (maxmemory): asynq cannot even take tasks off a queue, so nothing runs until there is
// memory. Nothing is lost. A package that accepts work must stop well before that.
// A handler panics: the task comes back after a growing delay, and the stack is logged.
// A task has no handler for its type: it is buried with an error that says so.
package queue
