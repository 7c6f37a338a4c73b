// Package outbox accepts messages and delivers each of their recipients, or reports why not.
//
// The first word of a file says which part it belongs to. A part is a field of [Outbox]. It has the parts
// that it uses as fields:
//
//	record_*      the record, which all parts share: keys, scripts, codec, clock
//	intake*       Intake accepts messages, of HTTP, SMTP, templates and mail merge
//	delivery*     Delivery makes one attempt: lease, rules, decision, outcome; and the sweeper
//	mailing*      Mailings sends one content to many people, by attempts that have no record
//	read_*        Reader has lists, single messages, the email log
//	operations_*  Operations are changes by operators: cancel, retry, reschedule, replay; retention
//	queues        Queues pauses and counts
//	facts         Facts records what becomes known after delivery
//	rates_*       Counts counts what happened, by hour and day
//
// Mail has two paths. A message (intake*, then delivery*) has a record from the submit to its end. The mail
// of a campaign (mailing*) has none: package newsletter asks for one attempt for each person, and its send
// log has the result. An email that is deferred becomes a message.
//
// The message record in Redis is the truth. A task in the queue only wakes a message: it has the message's
// id. Handling a task twice, early, late or never does no harm. Each change of a record is one Lua script
// (lua/*.lua). It writes the change, its indexes and its events together or not at all. An event carries its
// counts, and Counts adds it once.
//
//	            accept                begin                    every recipient done
//	(Submit) ─────────▶ waiting ──────────────▶ active ─────────────────────────────▶ (ended: sent)
//	                     ▲  ▲ │ sendAt             │ some deferred, attempts left
//	        due, resumed │  │ └──▶ scheduled       ├──▶ delayed (back to waiting when due)
//	                     │  └──── lease lost ◀─────┤
//	                     │                         │ permanent, or attempts or deliverBy used up
//	                     └──────── replay ◀── failed (a dead letter)
//
// All mail is sent by one function (Delivery.attempt), including campaign mail: the same rules apply before,
// and the same decision follows.
//
// It promises:
//   - Accepted is durable: Submit returns no error only if record and content are in Redis. The task is
//     queued in the same round trip, or by the sweeper.
//   - Never lost: if a worker dies, its leases end after Options.Lease, and the sweeper wakes its messages
//     within seconds.
//   - Never twice: a message has one lease holder. Every write of its attempt shows the fencing token. A
//     recipient whose 250 was read gets the message no second time. If the connection or the process dies
//     between the final dot and the reply, the attempt is in doubt. Options.HoldInDoubt says whether it is
//     repeated.
//   - The recipients of each transaction are recorded before the next one, so that no one gets the message
//     twice after a crash.
//   - Three kinds of waiting spend no attempt: for a limit's reservation, for a connection to a relay, and
//     for an account that is set to hold (delivery.accountTrouble) while its login, token, certificate or
//     sender is refused. A held account's messages are tried one at a time. The others follow once that one
//     is sent.
//   - A backlog of one account does not stand before the mail of others: beyond a window its waiting messages
//     have no task (Options.Window).
//   - No account and no token with a quota has more messages waiting, or more accepted in a day, than the
//     quota allows, whatever the number of processes (in a Cluster, except for messages accepted at the same
//     moment). A message counts once. A repeat of an accepted key is not refused.
//   - No mail to recipients who were suppressed before the attempt began. On a single server accept.lua looks
//     for suppressions itself, and begin.lua reports whether any were added since (see package suppression).
//     Otherwise, and if there are any, the suppressions are asked.
//   - Each recipient ends with exactly one of messageSent, messageFailed, messageCancelled,
//     messageSuppressed, until a replay queues it again.
//
// It neither speaks SMTP nor chooses the relay (packages smtpsend and accounts/routing do). It never decides
// by a task's own counters, and never writes keys of others.
//
// An ended message stays in the log for Options.KeepEnded, without its content: recipients, attempts, events.
// With Options.KeepContent, a sent message's content stays too, until Redis expires it or the entry goes. Its
// waits for a pause are computed from two things: the times in which it was due, which are in its record, and
// the past pauses, which a resume notes. No transition depends on them. The SMTP dialogues of its failed
// attempts stay too, under their own key. If there is a search index, its text is kept until the index has
// read it (Options.KeepText).
//
// With Options.Seal bodies of mail are sealed before they reach Redis. Sealed ones are read whatever the
// setting is. A message whose secret this process does not have waits, and spends no attempt.
//
// Its keys, all under postroom:{partition}, are listed in docs/redis-keys.md. It alone writes events about
// messages to the stream events.
//
// While Redis is unreachable, Submit fails with fault.Unavailable and accepts nothing. An attempt in progress
// continues, and its result is recorded once Redis is back. If a worker dies, its messages wait again.
// Different clocks of machines do not matter: each process uses the time of Redis.
package outbox
