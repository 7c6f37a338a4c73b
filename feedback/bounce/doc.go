// Package bounce reads an email that came back and returns what it means: the message, its recipients, and
// whether it reached them, is delayed, failed or drew a complaint. An out-of-office reply is none of these.
// Package feedback uses it for email to Postroom's return paths.
//
// It understands delivery status notifications (RFC 3464 and RFC 6533), feedback reports (RFC 5965), the
// notices that Amazon SES sends by email, and the plain text notices of mail servers. Two tables describe
// such text: forms.tsv recognizes a notice and finds where the returned message begins, and wording.tsv gives
// the meaning of sentences that quote no SMTP reply. smtpsend.Classify, which also classifies replies to
// Postroom, decides what a reply means.
//
// It promises:
//   - [Read] is pure: no network, no files, no clock. The same bytes give the same [Report].
//   - It reads at most [Options.MaxBytes], 8 levels and 100 parts, cuts long header fields, and reports at
//     most [Options.MaxRecipients] recipients. Its running time depends only on the number of bytes.
//   - No content causes a panic or an error; only the reader can fail. Unknown content is [None].
//   - An email counts as a bounce only if several signs agree. In doubt it is [None]: a missed bounce costs
//     one useless email, a false bounce costs a working address.
//   - It reads only the header of a returned message, to find our Message-ID. So a forwarded bounce isn't a
//     bounce.
//   - It makes text from outside printable and cuts it before it enters a Report.
//
// It never decides whether an email is genuine: anyone can forge a bounce. Before the caller acts on a
// Report, it must find a valid token (package signedtoken) in it, or the Message-ID of a message that went to
// this recipient.
//
// # How an email is read
//
// The first step that fits decides:
//
//  1. Feedback reports: RFC 5965, Microsoft's JMRP, the emails with which Apple Mail unsubscribes.
//  2. Delivery status notifications, even in a plain multipart/mixed.
//  3. Notices of Amazon SES as JSON.
//  4. A notification's fields within the text, as WorkMail writes them.
//  5. A notification that a gateway wrapped in its own notice.
//  6. Auto-replies by people. Servers mark bounces as automatic too, so email from a server goes to step 7.
//  7. Plain text notices. Their recipients are the addresses at the start of lines, in a transcript, or after
//     words such as "delivering to". Otherwise they are in X-Failed-Recipients or in the returned message.
//
// # When plain text is a bounce
//
// A plain text notice needs three points: a server's name as the sender (1), an empty return path (1), a
// known sentence in the text (2) or in the subject (1), a quoted SMTP reply about an address, or another
// reason next to the returned message (1). It must have one of the first two signs, or all others and the
// returned message. A subject that only people or reports use ("Re: …", "Daily report") makes it [None],
// unless it returns a message. A notice that names no recipient and didn't come from <> is [None] too.
//
// # Verdicts
//
// [Judge] passes the quoted reply to smtpsend.Classify, with these differences:
//
//   - A meaningful enhanced code in the reply wins over the Status that another server added.
//   - If a server quotes no reply, wording.tsv maps its text to one: "Host not found" is 550 5.1.2.
//   - A verdict is never auth: a refused login between other servers says nothing about our account.
//   - 5xx at the greeting is block, and a sequence error (503) is policy.
//   - Full mailboxes, loops and time-outs are soft.
//   - If a server gives up, its last reply counts.
//
// # Quality
//
// TestScore compares the results with labelled emails. It fails below 95 %, or if it reads another email as a
// bounce. It reads 98.4 % of the 232 emails that the rules were written with (from sisimai's set) correctly,
// and 95.1 % of the set's other 354 emails, with 97 of 105 dead addresses and one working address suppressed.
// To score other emails:
//
//	go test ./feedback/bounce -run TestScore -v -args -corpus=DIR -show
//
// DIR has labels.tsv, the emails and not-bounces/, like testdata/corpus. To support another server, add a
// line to forms.tsv and a labelled email to the corpus.
//
// The package owns no Redis keys.
package bounce
