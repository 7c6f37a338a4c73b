// Package newsletter stores campaigns and sends them: one content, once to each person that it chooses.
//
// # Words
//
// A run is one sending of a campaign. A scan looks for a run's people, chunk by chunk, in each process. A
// batch is a hundred people that one worker sends to. See package sendlog.
//
//	draft ── send ──▶ sending ── scanned, nobody left ──▶ sent ── resend ──▶ sending
//	draft ── send at ──▶ scheduled ── due ──▶ sending
//	sending ── pause ──▶ paused ── resume ──▶ sending
//	sending ── too many bounces, complaints or faults; account or relay in trouble ──▶ held
//	held ── resume ──▶ sending
//	all of these ── cancel ──▶ cancelled
//	scheduled ── content or account gone ──▶ failed
//
// # Promises
//
//   - Each person of a run gets the mail at most once, whatever crashes. After a crash between the final dot
//     and the reply, the person is in doubt: listed, and not automatically sent to again.
//   - Each person of a run gets the mail, or has a state that says why not. A run ends when no one waits.
//   - After Pause or Cancel has returned, no first attempt reaches its final dot, and no new one begins. An
//     attempt that is under way then may still finish: it asked the campaign when it began.
//   - A run begins to send once no one of an earlier cancelled run is under way.
//   - After a person's unsubscribe was stored, no attempt to send to them begins, and no relay learns their
//     address.
//   - When an attempt begins, data about its person is at most a second or two old, even when the outbox
//     tries again. A retry has the campaign's current content.
//   - The rate of a campaign is kept from below, too: turns are reserved a second ahead and used in order.
//   - The public archive shows only campaigns that were sent with archive to public lists, and no one's data.
//   - A run's content does not change with its template. Changing a paused campaign means new content, for
//     people who have not received it.
//   - A campaign is not deleted while a segment names it, so its deletion sends no one anything.
//   - Campaigns take turns, batch by batch, so a slow one delays no other.
//   - The numbers of variants, like all numbers, cost the same for any audience. The send log counts each
//     variant separately, and its test too ([sendlog.Group]). Recount compares the counts with each person.
//   - A failing relay defers no one: its people wait where they are. Only a person that a relay defers
//     becomes a message of the outbox, with its own attempts and delay.
//
// It never sends to pending or suppressed people, and writes no addresses to its own keys. It holds no
// audience in memory: a process has some 2,000 people of each campaign at a time.
//
// # Turns
//
// Workers are goroutines, not tasks of the queue: a batch takes a fraction of a second, and the queue wakes
// in whole seconds (decisions/0033). They rest while the queue bulk is paused.
//
// # Redis
//
//   - campaign:<id>, campaigns, campaigns:version: see package records. Partition 0.
//   - campaign-numbers (hash): ids by number; "last" is the number given last. Partition 0.
//   - campaigns-live (set): ids of campaigns that are scheduled, sending, paused or held. Partition 0.
//   - campaign-count:<run>: the process that counts the audience. Partition 0, expires.
//   - the keys of package sendlog.
//
// # Failures
//
// If Redis is unreachable, nothing is sent. A result that was read is recorded when Redis is back. If a
// process dies, its batches end with their leases, and other processes continue.
package newsletter
