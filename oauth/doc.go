// Package oauth keeps the access tokens with which accounts and gateways log in at SMTP servers (SASL XOAUTH2, OAUTHBEARER). Whoever has
// stored a refresh token never has to think of access tokens again: they are asked for when needed (RFC 6749 section 6), replaced before
// they expire, and replaced when a server refuses one.
//
// It promises that a token it hands out is good for another minute at least as far as the token server said, that all processes
// together ask the token server once for one token, and that a refresh token the server rotates is stored, sealed, before the access token
// that came with it is used, so that a crash in between costs nothing. The rotated one goes before the configured one until somebody
// configures another.
//
// It never writes a token, a client secret or an answer of the token server into an error or the log, apart from the error code and the
// description that RFC 6749 section 5.2 has for the client's developer; secrets are taken out of that, too. It never follows a redirect
// to another host, and never speaks to a token server without TLS unless that is on the loopback interface.
//
// Redis keys, in partition 0: oauth:<owner> (a hash of the sealed access token, when it expires, the sealed refresh token if the server
// rotated it, and a hash of what was configured) and oauth:<owner>:lock (who is asking now, for a few seconds).
//
// When the token server refuses for good (the refresh token was revoked, the client secret is wrong), the error says so
// ([Error.Permanent]), and somebody has to look at the account. When it can't be reached or is overloaded, the error is transient. When
// Redis is away, a token this process knows and that is still good is used; otherwise the caller is told, and tries again later.
package oauth
