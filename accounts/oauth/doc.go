// Package oauth keeps the access tokens with which accounts and gateways log in at SMTP servers (SASL
// XOAUTH2, OAUTHBEARER). Whoever has stored a refresh token never has to think of access tokens again: they
// are asked for when needed (RFC 6749 section 6), replaced before they expire, and replaced when a server
// refuses one.
//
// It promises that
//   - a token it hands out is good for another minute at least, as far as the token server said. Only when
//     that can't be asked, one that is about to expire is better than none;
//   - all processes together ask once for one token;
//   - a refresh token that the server rotates is stored, sealed, before the access token that came with it is
//     used, whatever becomes of the caller meanwhile. It goes before the configured one until somebody
//     configures another;
//   - a token server that has just refused, or could not be reached, is left alone for a while.
//
// It never writes a token, a client secret or an answer of the token server into an error or the log, apart
// from the error code and the description that RFC 6749 section 5.2 has for the client's developer; secrets
// are taken out of these, too. It follows no redirects, and speaks to no token server without TLS unless that
// is on the loopback interface.
//
// # Redis
//
// All keys are in partition 0, and all expire but the second:
//
//	postroom:{0}:oauth:<owner>       string  sealed: the access token, when it expires, the rotated refresh token, what was configured
//	postroom:{0}:oauth:owners        set     the owners, so that their records can be sealed again under another secret
//	postroom:{0}:oauth:<owner>:lock  string  who asks the token server just now, for some seconds
//
// An owner is "account:<id>" or "gateway:<id>".
//
// # When it fails
//
// When the token server refuses for good (the refresh token was revoked, the client secret is wrong), the
// error says so ([Error.Permanent]), and somebody has to look at the account. When it can't be reached or is
// overloaded, the error is transient. When Redis is away, a token this process knows and that is still good
// is used; otherwise the caller is told, and tries again later. A process that dies while it asks holds the
// others up until its lock runs out. Where it dies between the server's answer and its record, a rotated
// refresh token is lost with it: no client of OAuth can help that, and servers that rotate grant some reuse
// for it.
package oauth
