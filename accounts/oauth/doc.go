// Package oauth stores the access tokens with which accounts and gateways log in at SMTP servers (SASL
// XOAUTH2, OAUTHBEARER). The operator stores a refresh token once. Access tokens are requested when needed
// (RFC 6749 section 6), replaced before they expire, and replaced when a relay refuses one.
//
// It promises:
//   - A returned token is valid for at least another minute, by what the token server said. If the token
//     server can't be asked, a token that is about to expire is returned.
//   - All processes together request a token once.
//   - A rotated refresh token is stored, sealed, before the access token that came with it is used, even if
//     the caller has gone. It is tried before the configured token until a new one is configured.
//   - A token server that has just refused, or was unreachable, is not asked again for a while.
//
// It never writes a token, a client secret or an answer of the token server into an error or the log. The
// error code and the description that RFC 6749 section 5.2 has for the client's developer are exceptions;
// secrets are removed from these too. It follows no redirects, and uses no token server without TLS except on
// the loopback interface.
//
// # Redis
//
// All keys are in partition 0, and all expire but the second:
//
//	postroom:{0}:oauth:<owner>       string  sealed: access token, its expiry, rotated refresh token, hash of the configuration
//	postroom:{0}:oauth:owners        set     the owners, so that their records can be sealed again under another secret
//	postroom:{0}:oauth:<owner>:lock  string  the process that asks the token server, for some seconds
//
// An owner is "account:<id>" or "gateway:<id>".
//
// # Failures
//
// If the token server refuses permanently (the refresh token was revoked, the client secret is wrong), the
// error is permanent ([Error.Permanent]), and an operator has to act. If it is unreachable or overloaded, the
// error is transient. If Redis is unreachable, a valid token in the memory of the process is used; otherwise
// the caller gets an error and retries. A process that dies during a request blocks the others until its lock
// expires. If it dies between the server's answer and storing the record, a rotated refresh token is lost. No
// OAuth client can prevent that, and servers that rotate tolerate some reuse for it.
package oauth
