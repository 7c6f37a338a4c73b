// Package bounce reads a mail that came back and says what it is about: which recipients of which message did
// not get it, get it later or got it, who complained, or that it is only somebody's holiday greeting. It
// works for whoever takes in mail at the return path of what Postroom sends.
//
// It understands delivery status notifications (RFC 3464, with addresses beyond ASCII by RFC 6533), feedback
// reports (RFC 5965), the notices of Amazon SES by mail, and the notices that mail servers write as plain
// text. The words of the latter are in tables: forms.tsv says how such a notice is known and where the
// returned message begins, wording.tsv what is meant where no SMTP reply is quoted. What a reply means is
// decided by smtpsend.Classify, the very function that judges replies to ourselves.
//
// It promises:
//   - [Read] is pure: no network, no files, no clock. The same bytes give the same [Report].
//   - It reads at most [Options.MaxBytes], goes into at most 8 levels of parts and 100 parts, cuts long
//     header fields, and reports at most [Options.MaxRecipients] recipients. The time it takes grows with the
//     bytes read and with nothing else.
//   - No bytes make it panic or return an error; only the reader's own error does that. What it cannot make
//     sense of is [None].
//   - A mail is taken for a bounce only where several signs agree. When in doubt it is [None]: a bounce
//     missed costs a mail sent in vain, one imagined costs a living address.
//   - A message within the mail is where the Message-ID of ours is looked up, and nothing else: a bounce that
//     somebody forwards is no bounce.
//   - Text of strangers is made printable and cut before it is in a Report.
//
// It never decides whether to believe a mail: anybody can write a bounce. A Report tells who is said to have
// failed; the caller has to find a valid token (package signedtoken) in it, or a Message-ID that was sent to
// that very recipient, before it acts on that.
//
// It owns no Redis keys.
package bounce
