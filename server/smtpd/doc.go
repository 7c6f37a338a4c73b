// Package smtpd accepts mail from applications that speak SMTP and passes it to the outbox: the submission
// inlet (RFC 6409), in addition to the HTTP API.
//
// An application logs in (AUTH PLAIN or LOGIN) with an access token as its password. The user name is the
// account that sends. It may be empty if the token is bound to an account, or for the default account. The
// addresses of the SMTP conversation are the envelope of the message, whatever its header says. The control
// headers of a raw message (package message) work as they do over HTTP.
//
// # Promises
//
//   - 250 after the content means the same as 200 over HTTP: the message is durable in the outbox, under the
//     queue id in the reply. Nothing else is answered with 250 there. A message that is not accepted is
//     answered 4xx if trying again may help, else 5xx.
//   - Only CRLF . CRLF ends the content of DATA. Content with a dot next to a line break that is not CRLF is
//     refused. So no two servers can disagree about the end of a message, and none can be smuggled in
//     (CVE-2023-51764 to 51766). Octets that follow STARTTLS in the clear are refused.
//   - A token crosses the network encrypted, or stays on the machine. Without TLS, only clients on a loopback
//     address may log in, unless Options.InsecureAuth is set, or a trusted proxy says that the client uses
//     TLS to it.
//   - Package peers determines a client's address. A PROXY header from anybody but a trusted proxy ends the
//     conversation.
//   - Each message counts as one request of its token's rate limit. A deleted token sends nothing more within
//     half a minute, even on a connection that was open before.
//   - Everything that a client can make it hold is bounded: connections, recipients, bytes of a line, of a
//     message and of all messages, time without a login, time between commands, errors.
//
// It logs nothing that a client sent, except ids and, at debug, addresses. Clients learn of an internal error
// only that there was one. It adds no Received field: that would tell recipients where the application runs,
// and a message repeated under an idempotency key would differ from the first. It delivers nothing and knows
// no mailboxes: recipients are only checked for their syntax.
//
// # Bounces
//
// [NewBounceListener] makes the other kind of listener: for bounces and complaints, over SMTP from anybody,
// and over LMTP (RFC 2033) from a mail server of your own. Clients do not log in. A recipient that
// [Bounces] does not expect is refused at RCPT: 550 5.1.1 for a return path that is not ours, 550 5.7.1 for
// any other address. So it never relays. 250 after the content means that the facts in the mail are durable;
// 451 asks the other server to try again. It never answers mail with mail. It keeps the first megabyte of a
// mail, and reads all of it. The rules about the end of the content are the same.
//
// The package speaks the protocol itself. A server library hides what matters here: the bytes that end a
// message, the moment when a connection may be closed, and the texts of replies. See decisions/0011.
//
// # Redis
//
// It owns no keys. While Redis is unavailable, logins are answered 454 and messages 451, so the client keeps
// the message.
package smtpd
