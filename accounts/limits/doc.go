// Package limits decides when a message may go out. All processes of one Postroom together use an account or
// a gateway no faster than its relay allows, and a destination no faster than it takes mail. Package routing
// asks before each message, smtpsend before each connection.
//
// # What a rate means
//
//   - PerSecond is a token bucket: it starts full, holds Burst, and refills steadily, fractions of a token
//     included.
//   - PerMinute and PerDay bound every minute and every 24 hours, whenever they begin. Relays count so, and
//     lock an account that sends twice its quota around midnight, as a bucket that starts full would. Here a
//     token comes back one window after it was taken (up to two steps later: a step is a second of a minute,
//     a quarter of an hour of a day), one by one and not all at once.
//
// # Waiting
//
// A message that finds a scope full gets a reservation: the next free time of that scope, which no other
// message gets. It comes back at that time, shows the reservation, and passes that scope without paying
// again. Scopes are asked in order, and only the first full one reserves: otherwise the long queue of one
// slow account would reserve a shared gateway far into the future. So a message waits at most once for each
// scope, and costs one Redis command each time it asks, however long it waits and however many wait.
//
// # Destinations
//
// A destination is a group of recipients' domains at one gateway. A message asks each of its destinations for
// its recipients there, before account and gateway, in the same call. A destination with room takes only when
// all others admit the message. So a message that waits for a destination has taken nothing from the account
// and the gateway, and other mail keeps their full rate. An account's long queue uses up no destination that
// others send to.
//
// # Bulk mail
//
// Bulk mail never takes the last fifth of a rate: a scope has a second one for it ([Scope.Bulk]), with four
// fifths of its rate. It waits there, so its reservations for later do not delay other mail. A pause holds
// for both.
//
// # What it promises
//
//   - Messages admitted in any stretch of time stay within rate × time + burst. Messages that come back late
//     keep their reservation, and may bunch by ten seconds' worth. If a long outage made them later than
//     that, they get new reservations instead of all going out together.
//   - If a reservation is shown too early, the answer is the same time again. It lapses when it is an hour
//     late, when its scope's rate changes, and when its relay asks for a pause. Then the message asks as if
//     for the first time.
//   - A message with more recipients than a bucket holds goes when the bucket is full, and the scope then
//     owes the rest.
//   - A changed rate holds from the next message on.
//   - After [Limits.Throttled] nothing starts before the pause ends. Then the scope admits one recipient in
//     10 s, twice as many every 30 s, until nothing is bounded any more. No further call is needed.
//   - A scope without rates whose relay has not asked for a pause costs no Redis command. Each process learns
//     of pauses within a second (one GET a second in all), and immediately of pauses that its report began.
//   - All times are Redis' own, so processes with different clocks agree.
//
// It never sleeps, keeps no list of waiting messages, and blocks no one: it returns a time, and the caller
// comes back.
//
// # Redis
//
// All keys are in partition 0:
//
//   - limit:<scope>, limit:<scope>:bulk: hash, amounts taken and reserved, and the last pause. Expires an
//     hour after it ceased to matter.
//   - limit:<scope>:connections: sorted set, open connections by the end of their lease. Expires with the
//     last lease.
//   - limits:throttled: sorted set, scopes whose relay asked for a pause, by when that ceases to matter.
//     Expires with the last.
//   - limits:throttled:dest: the same of destinations, the last 100,000 of them.
//   - limits:version: number, raised by each pause.
//
// # When it fails
//
// If Redis is unreachable, every call that needs it fails with kind fault.Unavailable, and nothing is
// admitted. If the state is lost (Redis was emptied), all buckets are full again and all reservations have
// lapsed. Connections of a process that died are counted for another 30 seconds.
package limits
