// Package digest collects the notifications of a reader, and mails them as one message when the reader wants
// it.
//
// # Words
//
// A recipient is a reader, known by the id that the application gives it. An event is one notification. A
// category is what readers choose a cadence for; what is known of one is its kind. A schedule is a cadence
// with the categories that have it. A run is one mail of a schedule: it takes all events that wait in these
// categories. Its period is the local date, hour or time of the week that was asked for.
//
//	pending ─▶ processing ─▶ submitted ─ messageSent ─▶ sent
//	   ▲           │ error       └──── messageFailed ─▶ failed ─ retry ─▶ pending
//	   └───────────┤
//	               ├─ nothing or nobody to mail ─▶ skipped
//	               └─ attempts spent ─▶ failed
//
// # Promises
//
//   - An event that was answered as waiting or immediate is in exactly one mail, or is told as dropped: by an
//     event digestSkipped or digestFailed, which counts them.
//   - A schedule has one run in a period, whatever clocks, zones, their rules or preferences do. The id of
//     the run names the period. The outbox refuses a second message under it.
//   - A run is due at a time of the wall clock in the zone of its recipient, plus seconds that spread
//     recipients over digest.stagger. Package schedule says what clocks that jump do.
//   - What a run says does not change once it has begun: its events, its address and its language are stored.
//     A repetition makes the same message.
//   - No work is done for a recipient while no event waits.
//   - In quiet hours of a recipient only urgent mail is made, however late other mail is.
//   - Who turned a category off, left, was suppressed or erased is not mailed. Leaving turns off what is not
//     required. It ends when the reader asks for mail of a category that may be off.
//
// An event of a run that failed waits for the next run, once. If that fails too, it is dropped and told.
//
// It mails nobody itself: the outbox does, with its retries.
//
// # Work
//
// Each process that delivers claims what is due, some at a time, with a lease that it renews. If a process
// dies, or does not end a run in 30 seconds, its leases end and others go on where it was. That was an
// attempt: attempts are counted as they begin. Who comes late has a stale fence and changes nothing here; in
// the outbox its submit finds the message under the key of the run, or the key blocked for it. Workers rest
// while the queue digests is paused.
//
// # Redis
//
// The keys of a recipient are in the partition of a hash of account and id mod 16, so that each step is one
// script, also in a Cluster.
//
//   - digest-recipient:<account>:<id> (hash): address, preferences, version; the last period of each category
//     by mode (last:…), categories with events (c:…), days with keys (keyed), schedules that finish before a
//     change (old:…).
//   - digest-recipients:<account> (sorted set): ids.
//   - digest-address:<account>:<address> (set): ids of recipients who have the address, or once had it.
//   - digest-events:<account>:<category>:<id> (list), with :older (hash) and :actors (set): events that wait.
//     lua/prelude.lua has their form.
//   - digest-known:<day>:<account>:<id> (hash): idempotency keys of a day.
//   - digest-due (sorted set): schedules for which something waits, by the time when it is due.
//   - digest-open (sorted set): runs at work, by the end of their lease. digest-fences (hash): who has them.
//   - digest-run:<run> (hash), digest-taken:<run>:<n> (as digest-events): a run and its events until it ends.
//   - digest-runs:<account>:<state>, digest-recipient-runs:<account>:<id> (sorted sets): runs by time.
//   - digest-kind:<account>/<category>, digest-kinds: see package internal/redisdb/records.
//
// # Failures
//
// If Redis is unreachable, events are refused as Unavailable: with an idempotency key, to repeat them is
// safe. If a template fails, its run is tried again and then fails, and its events wait for the next run. If
// the outbox refuses a run because its quota is used up, the run waits.
package digest
