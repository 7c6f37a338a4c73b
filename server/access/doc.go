// Package access creates access tokens for programs and sessions for operators, and returns what the bearer
// of one may do. The API, the pages and the SMTP inlet ask it.
//
// A token is 32 random bytes, written as 64 hex digits and shown once. Its record is stored under their
// SHA-256, which is also the token's id (as in EmailEngine, so its ids and ours agree). The bootstrap token
// comes from the configuration and may do everything. It is compared in constant time and never stored, not
// even as a hash.
//
// # Scopes
//
// A route requires one scope, and [Grant.Allows] reports whether the token has it:
//
//   - send: submit messages, over HTTP or SMTP.
//   - smtp: submit messages over SMTP only.
//   - outbox: read and change the outbox, the message log and the dead letters.
//   - lists: read and change lists and their subscribers.
//   - campaigns: read and change campaigns, and send them; read lists and segments.
//   - metrics: read metrics and stats.
//   - api: the six above and everything else under /v1, accounts and webhook endpoints included, save
//     tokens and settings.
//   - admin, or "*": everything, tokens and settings included.
//
// A token bound to an account can only have api, send, smtp, outbox, lists and campaigns, and sees only that
// account: [Grant.CanSee].
// Routes to objects of the whole instance (the list of accounts, stats, queues, the instance's webhook
// endpoints) require CanSee("").
//
// # Promises
//
//   - Every process refuses a deleted token within a second. The sessions opened with it end too.
//   - Authenticating a cached token costs no round trip to Redis, except for one a second to notice
//     deletions, one a minute to store its use, and one a request if the token has a rate limit.
//   - A token is replaced by another with the same rights ([Access.Rotate]), in one step: only one of two
//     concurrent replacements happens. The old token keeps working until the overlap is over.
//   - Guessing is slowed down: after 20 wrong tokens a minute from one address (IPv6: one /64), more wrong
//     tokens from there are Limited until the minute is over.
//   - Right tokens always work, so no one behind the same proxy or NAT can lock their bearer out. Their
//     length protects them: 256 random bits, and 16 characters or more of the bootstrap token.
//   - The record of a token or session has a code made with the instance's secret ([seal.Ring.MAC]). A record
//     that Postroom did not write, or that was changed in Redis, is refused and logged. People who write to
//     Redis can delete tokens, and bring back deleted tokens that were copied, but not make or widen one.
//   - No token, cookie or hash of the bootstrap token is in Redis, in a log or in an error.
//
// The caller passes the address of a client, as package peers finds it. Access does not check that an
// account exists.
//
// # Redis
//
// All keys are in partition 0:
//
//   - token:<id>: hash of record, mac, used and from; expires 30 days after the token.
//   - tokens: sorted set of ids, by creation. tokens:account:<account>: those bound to it, by the expiry of
//     their record.
//   - tokens:version: number, raised by each deletion and replacement.
//   - tokens:rate:<id>, tokens:failures:<network>: counters that expire with their window.
//   - session:<hash of the cookie>: string, the code and the record; expires 12 hours after its last use.
//
// If Redis is unreachable, the bootstrap token still works, because it needs no look-up. Everything else
// returns Unavailable: a token that may have been deleted is not accepted from a stale cache.
package access
