// Package feedback applies what becomes known about mail after a relay took it. It reads the webhooks of
// providers, mail that came back, and hits of the tracking and unsubscribe pages. It finds the message of
// each fact, writes the fact onto the message's timeline, and suppresses dead addresses and recipients who
// complained.
//
// It promises:
//   - A fact that was taken is not lost. It is in Redis before its sender is answered, and is removed only
//     after it was applied.
//   - A fact is applied once, however often it is reported: the outbox knows a fact by its key.
//   - Facts may come in any order. A fact may come before the outbox knows the message's reference, because
//     the provider was faster than our own record. It is looked up again three times in about three minutes
//     before it counts as unknown.
//   - A fact that cannot be read, or whose message is unknown, does not affect the others.
//   - A refusal because of the sender or the content suppresses no one. Only a dead address, a complaint, an
//     unsubscribe, and several soft bounces do.
//   - It never changes the final state of a message.
//   - It never suppresses an address that the message was not sent to.
//   - One returned email suppresses no one permanently, and never a recipient whose token it lacks: anyone
//     who has a message can write a bounce for it. Emails about two messages confirm each other.
//   - It never believes a webhook that is not proven (package provider).
//   - It never delays sending: it works in small batches, and pauses longer the more mail there is.
//
// # The inbox
//
// Each partition has three streams, by importance: feedback has bounces, complaints and unsubscribes;
// feedback:deliveries has facts of delivered and deferred mail; feedback:hits has opens and clicks. Each
// stream has its own readers, so many hits delay no bounce. Each stream has a bound. If more facts wait, the
// sender is answered 503 and has to come again, but for hits, the oldest are dropped and counted instead.
//
// # How a fact is applied
//
// The readers (group "feedback") find the message by our own id, where the provider returned it or the
// Message-ID contains it. Otherwise outbox.Lookup finds it by the Message-ID and the provider's ids. Then
// outbox.RecordFacts puts the fact onto the timeline. Then the address is suppressed where the fact requires
// it. The entry is removed last. If a process dies in between, another process takes the entry. It finds that
// the fact is known, and suppresses again, which changes nothing.
//
// # Reconciliation
//
// Webhooks get lost. Where a provider has an events API ([Source]), one process regularly reads the events
// since the last time, with some overlap. Events that are known already change nothing. Each source has its
// own position, which is saved only after the facts before it are in the inbox.
//
// # Redis
//
//   - postroom:{p}:feedback, postroom:{p}:feedback:deliveries and postroom:{p}:feedback:hits: the inbox.
//   - postroom:{p}:feedback:waiting:<stream>: facts to be looked up again.
//   - postroom:{p}:feedback:counts: counts by source.
//   - postroom:{0}:feedback:token:<hash>: tokens of Mailgun that were used.
//   - postroom:{0}:feedback:owner: the process that reconciles.
//   - postroom:{0}:feedback:reconciled:<source>: the position of the reconciliation.
//
// # When things fail
//
// If Redis is unreachable, nothing is taken. Providers are answered 503, and Brevo, which drops an event
// after any other answer, 429. Batches under way are repeated until Redis is back. A fact that cannot be
// applied while others can is tried a few times, then logged, counted and dropped. If a process dies, others
// take its entries within seconds, and its reconciliation within half a minute.
package feedback
