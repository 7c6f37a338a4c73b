// Package replies says for operators, in plain words, what a mail server's reply means and what to do about
// it: the cause, the remedy, and the document that says so.
//
// It knows the wording of large providers and common servers, the enhanced status codes of the registry (RFC
// 3463), and the reply codes of SMTP (RFC 5321). It also knows Postroom's errors where no reply came, and the
// answers of webhook endpoints. All of that is in table.txt, which is written to be read and corrected.
//
// It promises that every reply has an explanation, that the same reply always has the same one, and that no
// reply makes it fail, whatever its bytes.
//
// It decides nothing. Whether a refusal is permanent, and whether an address is suppressed, is decided by
// smtpsend.Classify. The two may see different things in odd wording; then the explanation is what to
// correct. It owns no keys and does no I/O.
package replies
