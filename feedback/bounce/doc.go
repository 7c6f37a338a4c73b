// Package bounce reads returned mail and returns its meaning. A message's recipients did not get it, will get
// it later or got it; someone complained; or it is only an out-of-office reply. Package feedback uses it for
// mail to Postroom's return paths.
//
// It understands delivery status notifications (RFC 3464, with addresses beyond ASCII by RFC 6533), feedback
// reports (RFC 5965), the notices of Amazon SES by mail, and notices that mail servers write as plain text.
// Tables have the wording of the latter: forms.tsv how such a notice is recognized and where the returned
// message begins, wording.tsv the meaning of texts that quote no SMTP reply. smtpsend.Classify, which judges
// replies to Postroom, decides the meaning of a reply.
//
// It promises:
//   - [Read] is pure: no network, no files, no clock. The same bytes give the same [Report].
//   - It reads at most [Options.MaxBytes], goes into at most 8 levels of parts and 100 parts, cuts long
//     header fields, and reports at most [Options.MaxRecipients] recipients. The time it takes grows with the
//     bytes read and with nothing else.
//   - No content causes a panic or an error; the only error is the reader's. Unknown content is [None].
//   - Mail is a bounce only if several signs agree. When in doubt it is [None]: a missed bounce costs one
//     more email, a wrong one costs a living address.
//   - Only the header of a message within the mail is read, for our Message-ID: a forwarded bounce isn't a
//     bounce.
//   - Text from outside is made printable and cut before it is in a Report.
//
// It never decides whether an email is genuine: anyone can write a bounce. Before it acts on a Report, the
// caller must find a valid token (package signedtoken) in it, or the Message-ID of a message that was sent to
// that recipient.
//
// It owns no Redis keys.
package bounce
