// Package access decides who may do what: it makes access tokens for programs and sessions for people, and
// tells the doors (server and ui) what the bearer of one may do.
//
// A token is 32 random bytes, written as 64 hex digits and shown once. What is stored is a record under the
// SHA-256 of those bytes, which is also the token's id (as in EmailEngine, so its ids and ours agree). The
// bootstrap token comes from the configuration, may do everything, is compared in constant time and is never
// stored, not even as a hash.
//
// # Scopes
//
// A route asks for one scope, and [Grant.Allows] says whether the token has it:
//
//   - send: submit messages.
//   - outbox: read and change the outbox, the message log and the dead letters.
//   - metrics: read metrics and stats.
//   - api: the three above and everything else under /v1, accounts and webhook endpoints included, save
//     tokens and settings.
//   - admin, and its other name "*": everything, tokens and settings included.
//
// A token bound to an account has only api, send and outbox, and within them sees only that account:
// [Grant.CanSee]. What belongs to the whole instance (the list of accounts, stats, queues, the instance's
// webhook endpoints) belongs to no account, so routes to it require CanSee("").
//
// # Promises
//
//   - A token that was deleted is refused within a second by every process, and the sessions opened with it
//     end with it.
//   - Authenticating a token that was seen before costs no round trip to Redis, beyond one a second to learn
//     of deletions, one a minute and token to note its use, and one a request where the token has a rate
//     limit.
//   - Tokens cannot be guessed: after 20 failures a minute from one address (IPv6: one /64) that address is
//     told to wait. Tokens from Create go on working from there, since 256 random bits are no guess; the
//     bootstrap token, which somebody may have chosen badly, does not until the minute is over.
//   - No token, cookie or hash of the bootstrap token is in Redis, in a log or in an error.
//
// It never trusts a forwarded address (the caller says where a request comes from), knows nothing of HTTP and
// does not check that an account exists.
//
// # Redis
//
// All keys are in partition 0:
//
//   - token:<id>: hash of record and used; goes 30 days after the token expired.
//   - tokens: sorted set of ids, by creation. tokens:account:<account>: those bound to it, by the time they
//     go.
//   - tokens:version: number, raised by each deletion.
//   - tokens:rate:<id>, tokens:failures:<network>: counters that expire with their window.
//   - session:<hash of the cookie>: string, expires 12 hours after its last use.
//
// When Redis is away, the bootstrap token still works, because it needs no look-up; everything else answers
// Unavailable: a token that may have been deleted is not let in on an old memory.
package access
