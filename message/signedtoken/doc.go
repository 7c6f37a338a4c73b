// Package signedtoken makes and reads the signed references to a message that leave the house with it and come back in the hands of strangers:
// the tokens of tracking pixels, of links and of unsubscribe pages, and return paths, "bounces+<token>@example.com" (VERP: variable
// envelope return path). It serves whoever writes mail, and whoever answers what comes of it.
//
// A token holds the id of the message, the index of the recipient in its envelope, the account, and what its purpose needs: a link its
// target, an unsubscribe page its list and the recipient's address. So none of them needs a store: a redirect works while Redis is away.
//
// # Promises
//
//   - A token that was changed, made up, or cut out of another does not read, and one of a purpose is none of another: the purpose is
//     signed with it. The signature of URLs is an HMAC-SHA-256 cut to 128 bits. Return paths have room for 88: forging one takes 2^87
//     attempts on average, each of which is a mail to us.
//   - Tokens of unsubscribe pages are sealed (XChaCha20-Poly1305, the nonce made of the content): who sees the URL doesn't see whose it
//     is. No other token holds an address.
//   - The same stamp has the same token each time, so that a mail that is written twice is the same mail.
//   - A link leads where it led in the mail, and nowhere else: its target is signed.
//   - Return paths survive servers that change the case of the local part, being of a-z and 2-7 and read in either case. The local part
//     is at most 64 octets (RFC 5321 section 4.5.3.1.1): 58 with the usual prefix.
//   - Comparison takes the same time whatever the difference is, and the error does not say what was wrong, save that no key of the
//     token's id is known, which the token tells in clear.
//   - Keys rotate: the first key makes tokens, all of them read. A key's id is drawn from its secret; where two keys get the same, both
//     are tried.
//
// It never stores anything, puts no key and no token into errors, and does not judge how old a token may be: [Stamp.Time] says when the
// message was accepted, and the caller knows what that means. What it signs in clear can be read by anybody: the ids of message and
// account, and targets of links, which stood in the mail. It owns no Redis keys.
package signedtoken
