// Package dkim signs mail (DomainKeys Identified Mail, RFC 6376 and RFC 8463) and stores the keys of domains.
// The outbox signs with it. Operators and programs change the keys through the API and the pages.
//
// [Sign] puts a signature in front of a message. [Signer] also chooses the key: the key of the message's
// account, or of the domain in From. [Keys] stores domain keys. [Parse], [Generate], [Record] and
// [CheckRecord] are for keys and their DNS records.
//
// It promises:
//   - The message stays the same, byte for byte; the signature is put in front. A message that has
//     signatures, of this domain or another, gets one more: receivers accept any valid one, and those may
//     have been broken on the way.
//   - From, To, Subject and the other fields that readers and mail programs act upon are signed once more
//     than they occur. So no field can be added without breaking the signature (RFC 6376 section 8.15). The
//     body is signed to its end: no l=.
//   - Canonicalization is relaxed/relaxed, so relays may change white space and fold lines. A message with a
//     bare CR or LF is refused, since a relay would change it after it was signed.
//   - RSA keys have at least 2048 bits. Private keys are sealed before they reach Redis, each bound to its
//     domain. Answers show ****** instead; sending that back keeps the stored key.
//   - Every process sees a change of a domain's key within about a second. Looking keys up costs Redis one
//     command a second, not one for each message.
//
// It never sends, never asks the DNS, and never removes a signature.
//
// # Choice of the key
//
// A key is aligned with a message if its domain and From's belong to one organisational domain, as in DMARC's
// relaxed mode (RFC 7489 section 3.1.1). A stored key with an account signs the mail of that account only.
// Others sign the mail of accounts that may send as the key's domain ([Owner.Owns]).
//
// The first of these keys signs: the account's key if it is aligned; the key stored for From's domain, or for
// the nearest domain above it up to the organisational domain (example.co.uk, never co.uk); the account's
// key. Without a key the message is not signed.
//
// # Redis
//
// All keys are in partition 0: dkim:<domain> (hash: record, revision), dkim (sorted set of domains, all of
// score 0: in alphabetical order), dkim:version (raised by each change). None of them expires. Package
// records stores them.
//
// If Redis is unreachable, every call returns Unavailable, [Signer.Sign] too once its cache is older than a
// second. If a key can't be opened (the instance's secret was changed), mail of that domain can't be signed,
// and is not sent unsigned, until the key is entered again.
package dkim
