// Package digest collects the notifications of a reader, and mails them as one message when the reader wants
// it.
//
// # Words
//
// A recipient is a reader, known by the id that the application gives it. An event is one notification. A
// category is what readers choose a cadence for; its settings are its kind. A schedule is a cadence with the
// categories that have it. A run is one email for a schedule: it takes all events that wait in these
// categories. Its period is the requested local date, hour or time of the week.
//
//	pending ─▶ processing ─▶ submitted ─ messageSent ─▶ sent
//	   ▲           │ error       └──── messageFailed ─▶ failed ─ retry ─▶ pending
//	   └───────────┤
//	               ├─ nothing or nobody to mail ─▶ skipped
//	               └─ attempts spent ─▶ failed
//
// # Promises
//
//   - An event that was answered as waiting or immediate is in exactly one email, or is reported as dropped
//     by an event digestSkipped or digestFailed, which counts them.
//   - A schedule has one run in a period, whatever clocks, zones, their rules or preferences do. The id of
//     the run names the period. The outbox refuses a second message under it.
//   - A run is due at a time of the wall clock in the zone of its recipient, plus seconds that spread
//     recipients over digest.stagger. Package schedule says what clocks that jump do.
//   - What a run says does not change once it has begun: its events, its address and its language are stored.
//     A repetition makes the same message.
//   - No work is done for a recipient while no event waits.
//   - In quiet hours of a recipient only urgent mail is made, however late other mail is.
//   - A reader who turned a category off, unsubscribed, was suppressed or erased gets no mail. Unsubscribing
//     turns off what is not required. It ends when the reader asks for mail that may be off.
//
// An event of a run that failed waits for the next run, once. If that fails too, it is dropped and told.
//
// It sends nothing itself: the outbox does, with its retries.
//
// # Work
//
// Each process that delivers claims due schedules, some at a time, with a lease that it renews. If a process
// dies, or does not end a run in 30 seconds, its leases end and others continue where it was. That counts as
// an attempt: attempts are counted as they begin. A late worker has a stale fence and changes nothing here.
// In the outbox its submit finds the message under the run's key, or a blocked key. Workers pause while the
// queue digests is paused.
//
// # Redis
//
// A recipient's keys are in the partition of a hash of account and id mod 16, so that each step is one
// script, even in a Cluster.
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
//   - digest-open (sorted set): runs in progress, by their lease's end. digest-fences (hash): their holders.
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
