// Package bounce reads a mail that came back and returns its meaning: which recipients of which message did
// not get it, get it later or got it, who complained, or that it is only an out-of-office reply. Package
// feedback uses it for mail to the return paths of Postroom.
//
// It understands delivery status notifications (RFC 3464, with addresses beyond ASCII by RFC 6533), feedback
// reports (RFC 5965), the notices of Amazon SES by mail, and the notices that mail servers write as plain
// text. The words of the latter are in tables: forms.tsv has how such a notice is recognized and where the
// returned message begins, wording.tsv the meaning of words where no SMTP reply is quoted. smtpsend.Classify,
// which judges replies to Postroom, decides the meaning of a reply.
//
// It promises:
//   - [Read] is pure: no network, no files, no clock. The same bytes give the same [Report].
//   - It reads at most [Options.MaxBytes], goes into at most 8 levels of parts and 100 parts, cuts long
//     header fields, and reports at most [Options.MaxRecipients] recipients. The time it takes grows with the
//     bytes read and with nothing else.
//   - No content causes a panic or an error; the only error is the reader's. Unknown content is [None].
//   - A mail is a bounce only if several signs agree. When in doubt it is [None]: a missed bounce costs one
//     more mail, a wrong one costs a living address.
//   - Of a message within the mail only the header is read, for our Message-ID: a forwarded bounce is no
//     bounce.
//   - Text of strangers is made printable and cut before it is in a Report.
//
// It never decides whether a mail is genuine: anyone can write a bounce. Before it acts on a Report, the
// caller must find a valid token (package signedtoken) in it, or the Message-ID of a message that was sent to
// that recipient.
//
// It owns no Redis keys.
package bounce
