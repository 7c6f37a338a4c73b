// Package newsletter stores campaigns and sends them: one content, once to each person that it chooses.
//
// # Words
//
// A run is one sending of a campaign. A scan looks for the people of a run, chunk by chunk, in each process.
// A batch is a hundred people whom one worker mails. See package sendlog.
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
//   - Each person of a run is mailed at most once, in whichever processes, and whatever crashes. Whom a crash
//     caught between the final dot and the reply is in doubt: listed, and not mailed again by itself.
//   - Each person of a run is mailed, or has a state that says why not. A run ends only when nobody waits.
//   - After Pause or Cancel has returned, no first attempt reaches its final dot, and no further one begins.
//     One that is under way then may still finish: it asked the campaign when it began.
//   - A run begins to mail once nobody of a cancelled run before it is under way.
//   - Nobody is mailed by an attempt that begins after their wish to leave was stored, and no relay is told
//     their address.
//   - What is known of a person is at most a second or two old when an attempt begins, also when the outbox
//     tries again. A retry has the content that the campaign has then.
//   - The rate of a campaign is kept from below, too: turns are reserved a second ahead and used in order.
//   - The public archive shows only what was sent with archive to lists that are public, and of no person.
//   - The content of a run does not change with its template. To change a paused campaign is a new content,
//     for those who have not got it.
//   - A campaign is not deleted while a segment names it. Nobody is mailed because it is gone.
//   - Campaigns take turns, batch by batch, so a slow one delays no other.
//   - The numbers of variants, like all numbers, cost the same for any audience: the send log counts each
//     variant apart, and those of its test ([sendlog.Group]). Recount compares them with each person.
//   - A relay in trouble defers nobody: its people wait where they are. Only a person whom a relay puts off
//     becomes a message of the outbox, with attempts and a delay of its own.
//
// It never mails pending or suppressed people, writes no addresses to its own keys, and holds no audience in
// memory: a process has some 2,000 people of each campaign at a time.
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
// If Redis is unreachable, nothing is mailed. A result that was read is recorded when Redis is back. If a
// process dies, its batches end with their leases, and other processes go on.
package newsletter
