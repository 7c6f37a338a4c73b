// Package smtpd takes mail from applications that speak SMTP and hands it to the outbox: the submission inlet (RFC 6409), the other
// door beside the HTTP API.
//
// An application logs in (AUTH PLAIN or LOGIN) with an access token as its password; the user name is the account that sends, and may be
// empty where the token is bound to an account or the default account is meant. The addresses of the SMTP conversation are the envelope of
// the message, whatever its header says. The control headers of a raw message (package message) work here as they do over HTTP.
//
// # Promises
//
//   - 250 after the content means what 200 means over HTTP: the message is durable in the outbox, under the queue id in the reply. Nothing
//     else is ever answered with 250 there. A message that was not taken in is answered 4xx where trying again may help, else 5xx.
//   - Only CRLF . CRLF ends the content of DATA, and a content in which a dot stands beside a line break that is not CRLF is refused: no
//     two servers can disagree about where such a message ends, so nobody can smuggle a second one inside (CVE-2023-51764 to 51766). What
//     follows STARTTLS in the clear is refused.
//   - A token crosses the network encrypted, or stays on the machine: without TLS, only a client on a loopback address is let in, unless
//     Options.InsecureAuth says otherwise.
//   - Each message counts as one request of its token's rate limit, and a token that was deleted sends nothing more, within half a minute
//     even on a connection that was open before.
//   - What a client can make it hold is bounded: connections, recipients, bytes of a line, of a message and of all messages together,
//     time without a login, time between commands, errors.
//
// It never writes what a client sent into a log, save ids and, at debug, addresses; never tells a client more of an internal error than
// that there was one; adds no Received field, because that would tell recipients where the application runs, and would make the same
// message another one each time it is repeated under an idempotency key. It delivers nothing and knows no mailboxes: recipients are only
// checked for their syntax.
//
// # Mail that comes back
//
// [NewBounceListener] makes the other kind of door: for bounces and complaints, over SMTP from anybody, and over LMTP (RFC 2033) from a mail server of
// this house. Nobody logs in. A recipient that [Returns] doesn't expect is refused at RCPT: 550 5.1.1 for a return path that is not ours, 550
// 5.7.1 for any other address, so that it never relays. 250 after the content means that what the mail tells is durable; while it can't be made
// so, 451 asks the other server to come back. It answers no mail with mail. Of each one the first megabyte is kept, and all of it is read. The rules
// about the end of the content are the same.
//
// It speaks the protocol itself: a server library keeps to itself what matters here, the bytes that end a message, when a connection may
// be told to go, and what a reply says.
//
// # Redis
//
// It owns no keys. While Redis is away, logins and messages are answered 454 and 451, which tells a client to keep the message.
package smtpd
