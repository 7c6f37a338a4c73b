// Package dkim signs mail for outbox (DomainKeys Identified Mail, RFC 6376 and RFC 8463) and keeps the keys
// of domains for the doors, through which people and programs change them.
//
// [Sign] puts a signature in front of a message. [Signer] chooses the key of a message first: that of its
// account, or that of the domain in its From. [Keys] is the store of domain keys. [Parse], [Generate],
// [Record] and [CheckRecord] are for keys and what is published of them in the DNS.
//
// It promises:
//   - What is signed stays as it is, byte for byte; the signature is put in front. A message that carries
//     signatures already, of this domain or another, gets one more: receivers take any that holds, and those
//     there may have been broken on the way.
//   - From, To, Subject and the other fields that people and mail programs act upon are signed, and signed
//     once more than they occur, so that none can be added without breaking the signature (RFC 6376 section
//     8.15). The body is signed to its end: no l=.
//   - Canonicalization is relaxed/relaxed, so that relays may change white space and fold lines. A message
//     with a bare CR or LF is refused, since a relay would change it after it was signed.
//   - RSA keys have at least 2048 bits. Private keys are sealed before they reach Redis, each bound to its
//     domain, and answers show ****** instead; sending that back keeps the stored key.
//   - A change of a domain's key is seen by every process within about a second; looking a key up costs Redis
//     one command a second, not one for each message.
//
// It never sends, never asks the DNS, and never takes a signature out.
//
// # Which key signs
//
// A key is aligned with a message when its domain and that of From belong to one organisational domain, as
// DMARC's relaxed mode wants it (RFC 7489 section 3.1.1). The account's key signs if it is aligned; else the
// key stored for the domain of From, or for the nearest domain above it down to the organisational domain
// (example.co.uk, never co.uk); else the account's key all the same. With none the message goes unsigned.
//
// # Redis
//
// All keys are in partition 0: dkim:<domain> (hash: record, revision), dkim (sorted set of domains, all of
// score 0: in the order of the alphabet), dkim:version (raised by each change). None of them expires. They
// are kept by package records.
//
// When Redis is away, every call answers Unavailable, [Signer.Sign] too once what is remembered is older than
// a second. A key that can't be opened (the instance's secret was changed) fails the signing of that domain's
// mail, rather than letting it go unsigned, until the key is entered again.
package dkim
