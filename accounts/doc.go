// Package accounts stores the accounts that send: each has a name, an address and relays. The outbox asks it
// for an account ready to use with every message. Operators and programs change accounts through the API and
// the pages. Package records stores them, and seals and masks their secrets.
//
// The configuration may have one account (settings smtp and from), named "default". It exists without being
// stored. Changing it over the API stores an account of the same name, and a stored account takes precedence.
// Deleting the stored one brings the configured one back. The configured one itself can't be deleted: the
// answer is a Conflict that names the setting.
//
// An account has its own relay, or a list of gateways (package gateways), or both. Its own relay comes first.
//
// # Senders
//
// An account may send as its own address, as the domain of that address (unless Options.AddressOnly), and as
// the senders on its record. A sender is on record because it was set, because the DNS has a TXT record with
// a value for this account and domain, or because an address's owner said so (package senders). This package
// answers who may send as whom; outbox decides whose messages are checked.
//
// # Quotas
//
// This package answers how much an account may have: by its record, and for the rest by the settings.
// Packages outbox, templates and suppression count. [Accounts.Exceeded] turns an excess into the client's
// error, counts it, and logs it once a minute.
//
// # Refused accounts
//
// When a relay refuses the account itself (its login, token, certificate or sender), the message is not the
// cause, and an operator has to act. The first refusal of its kind since mail got through, or since the
// account was edited, writes one accountError event. With accountTrouble "hold" the account is also held: its
// mail waits, and one message at a time is tried, after 1, 5, 15, 30 minutes and then every hour. A check is
// due immediately if the account or one of its gateways is edited. A message that gets through ends the hold.
// In the first five seconds only a check's message counts, because connections that logged in earlier may
// still work for a while.
//
// It promises:
//   - Secrets (passwords, access tokens, OAuth client secrets and refresh tokens, proxies' passwords, DKIM
//     keys) are sealed before they reach Redis. Each is bound to its account and field, so a sealed value
//     copied to another account does not open. Answers show ****** instead. Sending that back keeps the
//     stored value, but only while the places it goes to stay the same. So people who may change an account
//     can't have its secrets sent to their own host.
//   - An error about a request names every wrong field.
//   - Every process sees a change within about a second, the process that made it immediately.
//   - [Accounts.Resolve] asks Redis once a second for changes, not for each message.
//   - Two changes at the same time do not mix: the later is applied to the result of the earlier.
//   - A refused account makes one event, and a due check is made once, whatever the number of processes: the
//     script that stores the refusal writes the event.
//
// It never sends mail and does not cancel the messages of a deleted account (the outbox does, on request). It
// opens secrets only for Resolve and Reseal.
//
// # Redis
//
// All keys are in partition 0: account:<id> (hash: record, revision), account:<id>:state (hash: state,
// connectedAt, lastError, lastErrorAt, that error's code, reply, command; a refusal's kinds, seen, seenAt,
// of; a hold's since, next, step, checking), accounts (sorted set of ids, all of score 0: in alphabetical
// order), accounts:version (raised by each change, and when a hold begins, is checked or ends),
// accounts:troubled (sorted set of ids by the time of their refusal; some may be over, [Accounts.Troubled]
// checks). None of them expires. Events go to the stream events of that partition, which outbox owns.
//
// If Redis is unreachable, every call returns Unavailable, [Accounts.Resolve] too once its cache is older
// than a second. Outcomes are then lost; the next one replaces them. If a secret can't be opened (the
// instance's secret was changed), Resolve fails for that account only, until the secret is entered again. A
// deleted gateway is left out, and logged. If an account has no relay left, [Sender.Ready] returns what to
// do.
package accounts
