// Package smtpsend hands one message to one relay and returns the result of each recipient. Its callers are
// outbox, which owns the message record, and whatever tests a relay's settings (Verify).
//
// It promises:
//   - Each recipient has its own result, from the relay's replies, judged by one pure function (Classify).
//   - No part of the dot that ends a message is written before Message.BeforeDot has returned nil, when all
//     else of the message has been written. (A lone dot only ends content that was accepted for no
//     recipient.) Nothing can be delivered before, so no earlier failure is in doubt. Error.InDoubt is true
//     only if the connection dies between the dot and the reply to it (RFC 1047).
//   - Nothing of this message follows its dot. With PIPELINING, the envelope (MAIL, RCPT, DATA) of the next
//     message in line may follow in the same write: it saves that message its round trips. The reply to the
//     dot is read first and belongs to this message. The next message's content is sent only after the
//     relay's own 354 to its DATA, so its BeforeDot keeps its meaning. If the connection ends at the dot, or
//     the relay gives up before it answers the next MAIL, the next message starts again over another
//     connection: none of it can have been delivered. If its caller gives up before that, the connection is
//     closed, and the relay has an envelope without a message.
//   - Credentials are sent only inside verified TLS, except where the operator allowed otherwise. No error
//     and no log line contains them. The same holds for a proxy's.
//   - Relays and proxies are dialed if Options.Guard permits their address. A refusal is a failure of the
//     account's settings. Errors quote a server only once it has proven to be an SMTP server. Until then its
//     text is in the log, at debug.
//   - The wire carries the intended message. Addresses are checked again. Every bare CR or LF in a message
//     becomes CRLF before dots are doubled (SMTP smuggling, CVE-2023-51764 to 51766). Bytes sent ahead of a
//     TLS handshake are an error.
//   - A large message is never in memory as a whole: it is read from its Body while it is sent. If reading
//     fails, or gives another number of octets than the Body's size, the connection is dropped before the
//     dot, so no truncated message is delivered.
//   - Result.Dialogue is an excerpt of the dialogue if a recipient did not get the message: bounded, without
//     content, credentials and answers to challenges. It may name recipients.
//   - Replies are bounded in size, every wait has a timeout, and the end of the context closes the
//     connection.
//
// It does not retry, with two exceptions in which the relay cannot have seen the message. A used connection
// that turns out to be dead is replaced once by a new one. Recipients refused because the transaction was
// full follow in the next transaction. Everything else is outbox's decision. It changes only line ends and
// dots of a message, keeps nothing on disk and owns no Redis keys.
//
// When a relay fails, Send returns an *Error with the phase, the reply and the verdict. When Run is not
// running, idle connections are found too old at their next use instead of being closed in time. Nothing else
// depends on it.
package smtpsend
