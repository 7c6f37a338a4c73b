// Package accounts keeps the senders: for each a name, an address and the relays its mail goes through. It
// works for outbox, which asks for a sender ready to use with every message, and for the doors, through which
// people and programs change accounts. Package records keeps them, and seals and masks their secrets.
//
// There may be one account from the configuration (settings smtp and from), named "default". It exists
// without being stored. Changing it over the API stores an account of the same name, and a stored account
// wins; deleting that brings the configured one back. The configured one itself can't be deleted: that is
// refused as a Conflict that says where it comes from.
//
// An account has a relay of its own, or a list of gateways (package relays), or both: then its own relay
// comes first.
//
// # Trouble
//
// When a relay refuses the account itself (its login, token, certificate or sender), no message is at fault,
// and somebody has to look at the account. The first refusal of its kind since mail got through, or since the
// account was edited, writes one accountError event. With accountTrouble "hold" the account is held besides:
// its mail waits, and one message at a time is tried, after 1, 5, 15, 30 minutes and then every hour, and at
// once when the account or a gateway of it was edited. A message that gets through ends the hold; in the
// first five seconds only one tried for that end counts, because connections that logged in earlier may go on
// for a while.
//
// It promises:
//   - Secrets (passwords, access tokens, OAuth client secrets and refresh tokens, passwords of proxies, DKIM
//     keys) are sealed before they reach Redis, each bound to its account and field, so that a sealed value
//     copied to another account opens nothing. Answers show ****** instead; sending that back keeps the
//     stored value, but only as long as the places it goes to stay the same, so that who may change an
//     account can't have its secrets sent to a host of their own.
//   - Every wrong field of a request is reported at once.
//   - A change is seen by every process within about a second, and by the process that made it at once.
//   - [Accounts.Resolve] asks Redis once a second to learn of changes, not for each message.
//   - Two changes at the same time do not mix: the later one is applied to the result of the earlier one.
//   - One trouble makes one event, and a check that is due is made once, whatever number of processes there
//     are: the event is written by the script that notes the trouble.
//
// It never sends mail, does not cancel the messages of a deleted account (outbox does, when asked by the
// door), and never has a secret opened except for Resolve and Reseal.
//
// # Redis
//
// All keys are in partition 0: account:<id> (hash: record, revision), account:<id>:state (hash: state,
// lastError, lastErrorAt; of trouble kinds, seen, seenAt, of; of a hold since, next, step, checking),
// accounts (sorted set of ids, all of score 0: in the order of the alphabet), accounts:version (raised by
// each change, and when a hold begins, is checked or ends), accounts:troubled (sorted set of ids by the time
// their trouble began; some may be over, [Accounts.Troubled] looks). None of them expires. Events go to the
// stream events of that partition, which outbox owns.
//
// When Redis is away, every call answers Unavailable, [Accounts.Resolve] too once what it remembers is older
// than a second; outcomes are then lost, which the next one makes good. A secret that can't be opened (the
// instance's secret was changed) fails Resolve for that account only, until the secret is entered again. A
// gateway that was deleted is left out, with a line in the log; of an account without any relay left,
// [Sender.Ready] says what to do.
package accounts
