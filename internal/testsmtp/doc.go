// Package testsmtp is an SMTP server for tests and benchmarks of whoever sends mail.
//
// A Server takes mail as fast as it can and does, where told, what relays do on their bad days: refuse a
// recipient, answer 451 to the dot, close after storing the message, say nothing for ever. What it does
// follows from the recipient's address (see Options.Respond) or from a function of the test. A Transcript
// plays one exact dialog from a file and reports where the client strayed from it.
//
// It keeps what it accepted in memory until it is closed, trusts nobody's limits but its own, and is never
// part of the product.
//
// # Postfix
//
// It also runs a real Postfix for tests: an instance of its own, on a free port of the loopback
// interface, that delivers all mail for example.net into one maildir and sends nothing out, but where a test
// says so.
//
// It needs Debian's postfix and, as Postfix does, root. A test that can't have it fails, with a sentence that
// says what to do.
package testsmtp
