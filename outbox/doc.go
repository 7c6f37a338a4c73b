// Package outbox sees a message through from acceptance to the last word about each of its recipients.
//
// Its files are grouped by the life of a message. References between the groups run one way (groups_test.go):
//
//	record_*    the record: keys, scripts, codec, clock; everything below stands on it
//	intake*     takes messages in: one way for HTTP, SMTP, templates and mail merge
//	delivery*   one attempt: lease, decision, outcome; and the sweeper
//	read_*      lists, shows, the email log
//	desk_*      what operators do: cancel, retry, reschedule, replay; retention
//	queues, facts*  pause and counts; what becomes known later
//
// The message record in Redis is the truth. A task in the queue is only a wake-up: it carries the message's
// id, and handling it twice, early, late or never is harmless. Each change of a record is one Lua script
// (lua/*.lua), which writes the change, its indexes, its counters and its event together or not at all.
//
//	            accept                begin                    every recipient done
//	(Submit) ─────────▶ waiting ──────────────▶ active ─────────────────────────────▶ (ended: sent)
//	                     ▲  ▲ │ sendAt             │ some deferred, attempts left
//	        due, resumed │  │ └──▶ delayed ◀───────┤
//	                     │  └──── lease lost ◀─────┤
//	                     │                         │ permanent, or attempts or deliverBy used up
//	                     └──────── replay ◀── failed (a dead letter)
//
// It promises:
//   - Accepted is durable: Submit answers without error only when record and content are in Redis. The task
//     is queued in the same round trip, or the sweeper queues it.
//   - Never lost: the lease of a worker that died runs out after Options.Lease, the sweeper wakes its
//     messages within seconds.
//   - Never twice: a message has one lease holder, shown by a fencing token that every write of the attempt
//     carries. A recipient whose 250 was read is never sent to again. Where the connection or the process
//     died between the final dot and the reply, the attempt is marked in doubt, and Options.HoldInDoubt says
//     whether it is sent again.
//   - A message with more recipients than one transaction takes is recorded after each, so that a crash mails
//     nobody twice.
//   - What is not the message's fault spends no attempt: waiting for a reservation in a limit, and, where the
//     account is set to hold its mail (delivery.accountTrouble), for the account's login, token, certificate
//     or sender to be accepted again. In trouble one message at a time is tried; the others follow when it
//     goes.
//   - Nobody is mailed who was suppressed before the attempt began. Where one server has all keys accept.lua
//     looks for that itself, and begin.lua says whether anything was added since (see package suppression);
//     else, and wherever there is anything, it is asked for.
//   - Each recipient ends in exactly one of messageSent, messageFailed, messageCancelled, messageSuppressed;
//     a replay opens it again.
//
// It never talks SMTP itself nor picks the relay (packages smtpsend and accounts/routing do), never decides
// from a task's own counters, and never writes outside its keys.
//
// What ended stays in the log, without its content, for Options.KeepEnded: who it was for, every attempt, and
// every event. The content of a short mail stays beside it until the search index has read it, where there is
// one (Options.KeepText).
//
// Keys, all under postroom:{partition}: message:, envelope:, content:, incoming:, status: and ended: followed
// by the message's id; index:<lane>:<state> and log:<lane>:<result>, each also with an account at its end;
// due, leases, held, held:<account>, unqueued, dead, ended, idempotency:<hash>, stats:<hour> and
// stats:<hour>:<account>, and the stream events, which it alone writes to about messages.
//
// When Redis is away, Submit fails with fault.Unavailable and nothing is accepted; an attempt in flight goes
// on, and its result is recorded when Redis is back. When a worker dies, its messages wait again. When clocks
// differ between machines, nothing happens: each process keeps its clock to Redis' own.
package outbox
