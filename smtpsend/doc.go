// Package smtpsend hands one message to one relay and says what came of it for each recipient. It works for
// outbox, which owns the message record, and for whoever wants to know whether a relay's settings are right
// (Verify).
//
// It promises:
//   - Every recipient gets an answer of its own, read from the relay's replies and judged by one pure
//     function (Classify).
//   - Nothing of the dot that ends a message is written before Message.BeforeDot has run and said yes, when
//     all else of the message is on its way (a lone dot only ends content that was taken for nobody); until
//     then nothing can have been delivered, so a failure up to there is never in doubt. Only a connection
//     that dies between the dot and the reply to it makes Error.InDoubt true (RFC 1047).
//   - Nothing of this message follows its dot. What may follow, in the same write, is the envelope (MAIL,
//     RCPT, DATA) of the next message that waits for the connection, where the relay offers PIPELINING: it
//     saves that message its round trips. The reply to the dot is read first and belongs to this message. No
//     content of the next is sent before the relay's own 354 to its DATA, so its BeforeDot means what it
//     always does. When the connection ends at the dot, or gives up before it answers the next MAIL, the next
//     message goes over another connection as if nothing had been said: nothing of it can have been
//     delivered. When its caller gives up meanwhile, the connection is closed, which leaves the relay with an
//     envelope and no message.
//   - Credentials travel only inside TLS that was verified, save where the operator allowed otherwise, and
//     are in no error and no line of log. The same holds for a proxy's.
//   - What reaches the wire is what was meant: addresses are checked again, every bare CR or LF in a message
//     becomes CRLF before dots are doubled (SMTP smuggling, CVE-2023-51764 to 51766), bytes sent ahead of a
//     TLS handshake are an error.
//   - A large message is never in memory as a whole: it is read from its Body while it leaves. When the
//     reading fails, or gives more or fewer octets than the Body said, the connection is dropped before the
//     dot, so no truncated message is ever delivered.
//   - Replies are bounded in size, every wait has an end, and the end of the context closes the connection.
//
// It never retries, with two exceptions in which the relay cannot have seen the message: a connection used
// before that turns out to be dead is replaced once by a new one, and recipients refused because the
// transaction was full follow in the next transaction. Everything else is outbox's decision. It never changes
// a message beyond line ends and doubled dots, keeps nothing on disk and owns no Redis keys.
//
// When a relay fails, Send answers with an *Error that names the phase, the reply and the verdict. When Run
// is not running, idle connections are found out of date at their next use instead of being closed in time;
// nothing else depends on it.
package smtpsend
