// Package sendlog stores each person's result in each run of a campaign: half a byte, and some bits.
//
// # Words
//
// A run sends a campaign once ([Run]). Its people are named by their ordinals in the account (see audience).
// A chunk is 64,000 ordinals. A batch is a small number of people of a chunk that one worker sends to.
//
//	waiting ── claim ──▶ taken ── mark ──▶ at dot ── settle ──▶ sent, bounced, failed
//	   ▲                   │  │               └─ no reply ─▶ in doubt ── settle ──▶ sent
//	   └── give back ◀─────┘  └── settle ──▶ suppressed, unsubscribed, bounced, failed
//	deferred ◀── settle ── taken, at dot;  then ──▶ sent, bounced, failed, suppressed, unsubscribed, cancelled
//	   ▲─────── replay of a dead letter ─────────────────── bounced, failed
//
// # Promises
//
//   - If several workers claim a person of a run, one gets the person.
//   - Directly before the final dot a worker marks its person. That succeeds only while the batch is its own,
//     the run has permission, and no one was suppressed since the worker asked. So after [Log.Deny] has
//     returned, no person is marked.
//   - Marks and results of one process that wait at the same time are written by one script, each by its own
//     conditions ([redisdb.Group]). A crash leaves only people in doubt whose mail was under way.
//   - A result comes back with the version of the suppressions at that moment, so that the next email of its
//     worker need not ask for it.
//   - A batch has a lease. When it ends, people who were only taken wait again. People at the dot are in
//     doubt, or wait again if [Log.ExpireLeases] says so. Other people are not affected.
//   - A worker whose batch has ended can only change states to sent: others may have its people.
//   - Whoever was left out of a scan until later is not forgotten, whoever scanned which part ([Claim]).
//   - A state changes only to one that may follow it. A settled state stays, whoever repeats it.
//   - The counters of a state change in the step that changes the state. [Log.Recount] compares both.
//   - The counters of each group of people change in the same step. A claim names each person's group
//     ([Group]), which never changes within a run. So reading them is as cheap for 10 million people as for
//     ten thousand: a hash for each chunk. A run without groups has neither their key nor their counters.
//   - A deferred person is listed until the outbox has the message ([Log.Enqueued]), so a crash loses no one.
//
// It knows no campaigns and no addresses, decides nothing, and deletes only on request.
//
// # Redis
//
// All keys of a chunk have the prefix postroom:{chunk mod 16}, like package audience's. <log> is
// sendlog:<campaign>.<run>:<chunk>.
//
//   - <log> (string): 4 bits of each person.
//   - <log>:counts (hash): counters, and where the chunk's scan is. g<group>:<counter>: a group's.
//   - <log>:groups (string): 4 bits of each person, in runs whose people have groups.
//   - <log>:batches (sorted set): batches by the end of their lease. <log>:batch:<n> (string): their people.
//   - <log>:owed (set): deferred people whose message the outbox may not have.
//   - <log>:why (hash): the last replies to people who were not sent to.
//   - <log>:earlier (hash): by offset, the attempts before the replay of a message.
//   - <log>:tried (string): 40 bits of each person: the time of the last attempt, and how many there were.
//   - <log>:<bit> (string): one bit of each person. See [Bit].
//   - send-allowed:<campaign>.<run> (string), under each of the 16 prefixes: whether people may be marked.
//
// # Failures
//
// If Redis is unreachable, calls fail with fault.Unavailable. A mark that failed may have been made: the
// worker must not write the dot, and the person is in doubt when the lease ends. All times are Redis' times.
package sendlog
