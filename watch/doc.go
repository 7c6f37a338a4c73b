// Package watch notices when mail stops, and alerts the team without anybody having to run a monitoring
// system: with an event, which webhooks deliver, a line in the log at error, and a metric.
//
// Every process looks every Options.Every. An [alert] is raised when its condition holds, and resolved when
// the condition has not held for a minute of looks in a row, so that one trouble that comes and goes is one
// alert.
//
//	queueAge        work that is due has waited for too long, and its queue is not paused
//	queuePaused     a queue has been paused for too long
//	mailFails       many messages, or a large share of them, failed for good within the hour
//	accountTrouble  accounts whose login, token, certificate or sender is refused: their mail waits, or fails
//	outboxFull      the outbox holds nearly as many messages as it may; at the limit new mail is refused
//	redisMemory     Redis is nearly as full as it may be; beyond that new mail is refused
//	redisEvicts     Redis has thrown keys away
//	redisForgets    Redis does not keep what it acknowledges, may throw it away, or fails to write it to disk
//	redisAway       Redis does not answer, or refuses to write
//
// It promises:
//   - One trouble raises one alert and resolves it once, whatever number of processes look: the state of an
//     alert and its event change in one step, and only from the state that was read.
//   - Nothing is raised on what could not be measured, and nothing is resolved on it.
//   - It changes nothing but its own keys, and costs Redis a handful of commands for each look; mail is
//     counted once a minute.
//
// It never mends anything, and never alerts about single messages or deliveries: messageFailed,
// accountError and webhookDisabled do.
//
// Keys, in partition 0: alerts (hash: an alert's name, with its queue, to its state as JSON), alerts:looked
// (string: when a process last looked, written to see whether Redis takes writes; an hour). It appends to
// the stream events, which outbox owns.
//
// When Redis is unavailable, or refuses to write, there is no event, and no state that processes share:
// each then logs and shows in its metrics what it notices, redisAway first of all, and writes what still
// stands once Redis is back. When a process dies, the others look on. When an alert is switched off in the
// settings, or nobody can measure it any more, it is resolved after five minutes.
package watch
