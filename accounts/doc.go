// Package accounts keeps the senders: for each a name, an address and the relay its mail goes through. It works for outbox, which asks
// for a sender ready to use with every message, and for the doors, through which people and programs change accounts.
//
// There may be one account from the configuration (settings smtp and from), named "default". It exists without being stored. Changing
// it over the API stores an account of the same name, and a stored account wins; deleting that brings the configured one back. The
// configured one itself can't be deleted: that is refused as a Conflict that says where it comes from.
//
// It promises:
//   - Passwords and access tokens are sealed before they reach Redis, each bound to its account and field, so that a sealed value copied
//     to another account opens nothing. Answers show ****** instead; sending that back keeps the stored value, but only as long as the
//     relay's host stays the same, so that who may change an account can't have its password sent to a host of their own.
//   - Every wrong field of a request is reported at once.
//   - A change is seen by every process within about a second, and by the process that made it at once.
//   - [Accounts.Resolve] asks Redis once a second to learn of changes, not for each message.
//   - Two changes at the same time do not mix: the later one is applied to the result of the earlier one.
//
// It never sends mail, does not cancel the messages of a deleted account (outbox does, when asked by the door), and never opens a secret
// except for Resolve.
//
// # Redis
//
// All keys are in partition 0: account:<id> (hash: record, revision), account:<id>:state (hash: state, lastError, lastErrorAt), accounts
// (sorted set of ids, all of score 0: in the order of the alphabet), accounts:version (raised by each change). None of them expires.
//
// When Redis is away, every call answers Unavailable, [Accounts.Resolve] too once what it remembers is older than a second; outcomes are
// then lost, which the next one makes good. A secret that can't be opened (the instance's secret was changed) fails Resolve for that
// account only, until the secret is entered again.
package accounts
