// Package feedback learns what became of mail after a relay took it: it takes in what providers tell by webhook, what comes back as mail,
// and what the tracking and unsubscribe pages saw, finds the message that each fact is about, puts it onto that message's timeline, and
// keeps dead addresses and complainers from being mailed again.
//
// It promises that
//   - a fact that was taken is not lost: it stands in Redis before anybody is answered, and leaves only once it was applied;
//   - it is applied once, however often it is told: the outbox knows a fact by its key;
//   - facts may come in any order. One that comes before the outbox knows the message's reference, because the provider was faster than our
//     own record, is looked at again three times in about three minutes before it counts as unknown;
//   - one fact that can't be read, or names a message nobody knows, costs the others nothing;
//   - what the recipient's server said of who sent, and of what, suppresses nobody: only an address that is dead, a complaint, and an
//     unsubscription do, and soft bounces once there were several.
//
// It never changes how a message ended, never suppresses an address that the message was not sent to, never believes a webhook that is not
// proven (package provider), and never delays sending: it works in small pieces, and rests the longer the more mail there is.
//
// # The inbox
//
// Three streams in each partition, in the order in which they are worth being read: feedback has bounces, complaints and unsubscriptions,
// feedback:deliveries what was delivered or deferred, feedback:hits opens and clicks. Each has readers of its own, so a firehose of hits
// delays no bounce, and a bound: when more facts wait than that, whoever told is answered to come back (503), but for hits, of which the
// oldest are dropped and counted.
//
// # How a fact is applied
//
// The readers (group "feedback") find the message: by our own id where the provider told it back, or where the Message-ID has it in it; else by
// what outbox.Lookup knows of the Message-ID and of the provider's ids. Then outbox.Learn puts the fact onto the timeline, then suppression is
// told, and last of all the entry goes. A process that dies in between leaves the entry to another one, which learns that the fact is
// known and suppresses again, which changes nothing.
//
// # Reconciliation
//
// Webhooks get lost. Where a provider has an events API ([Source]), one process asks it regularly for what it told since, with some
// overlap; what is known already is absorbed. How far it got is written down when, and only as far as, facts are in the inbox.
//
// # Redis
//
// postroom:{p}:feedback, postroom:{p}:feedback:deliveries and postroom:{p}:feedback:hits, the inbox; postroom:{p}:feedback:waiting:<stream>,
// facts to be looked at again; postroom:{p}:feedback:counts, what was counted, by who told; postroom:{0}:feedback:token:<hash>, tokens of Mailgun
// that were used; postroom:{0}:feedback:keeper, who reconciles; postroom:{0}:feedback:reconciled:<source>, how far that got.
//
// # When things fail
//
// Redis away: nothing is taken, providers are told to come back (503; Brevo, which drops everything else, 429); what is in hand is repeated
// until Redis is back. A fact that can't be applied though others can is tried a few times, logged, counted and dropped. A process dies:
// others take its entries within seconds, and the reconciliation within half a minute.
package feedback
