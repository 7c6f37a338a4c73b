// Package signedtoken makes and reads the signed references to a message that leave Postroom in mail and come
// back from unauthenticated clients. These are the tokens in tracking pixels, links, unsubscribe pages and
// confirmations; return paths such as "bounces+<token>@example.com" (VERP, variable envelope return path);
// and proofs, which Message-IDs and providers' metadata hold. Package outbox makes them; package feedback
// reads them. Package audience has confirmations.
//
// A URL's token holds the message's id, the recipient's index in the envelope, the account, and what its
// purpose needs. A click has its target, an unsubscribe page its list and the recipient's address, a
// confirmation its lists and the subscriber's address. No token needs a store: a redirect works while Redis
// is unreachable.
//
// A return path and a proof hold the message's id and two keyed hashes of 32 bits, for the account and the
// only recipient. They show whether a given account and address are meant ([Sent]). So a report about a
// message proves whom it went to and whose it was, when no log has the message any more. No one else can
// compute the hashes, so they reveal nothing.
//
// # Promises
//
//   - A token that was changed, invented or cut out of another is refused. A token of one purpose is refused
//     for every other, because the purpose is signed too. So a [Preview], which the links of an unsent email
//     have, gives access to nothing. Tokens in URLs have an HMAC-SHA-256 cut to 128 bits. Return paths and
//     proofs have room for 80 bits: forging one takes 2^79 attempts on average, and each attempt is an email
//     or a signed webhook to us.
//   - Tokens of unsubscribe and sender pages and of confirmations are sealed (XChaCha20-Poly1305 with a nonce
//     made of the content), so the URL does not show whose it is. No other token holds an address.
//   - Equal content gives an equal token, so an email that is written twice is the same email.
//   - The target of a link is signed: the link leads there and nowhere else.
//   - Return paths survive servers that change the case of the local part: they use a-z and 2-7 and are read
//     in either case. The local part has 64 octets, as RFC 5321 section 4.5.3.1.1 allows; a Message-ID's has
//     58.
//   - Comparison takes constant time, and the error does not give the reason. The only exception is an
//     unknown key id, which the token shows in clear anyway.
//   - Keys rotate: the first key signs, all keys verify. A key's id is derived from its secret. If two keys
//     share an id, both are tried.
//
// The package stores nothing and puts no key and no token into errors. It does not judge a token's age:
// [Token.Time] is the time the message was accepted or the link was made, and the caller decides. Anyone can
// read the signed ids of message and account, and targets of links, which were in the mail anyway. It owns no
// Redis keys.
package signedtoken
