// Package testsmtp provides SMTP servers for tests and benchmarks of senders: one that misbehaves on request,
// and a real Postfix.
//
// A [Server] takes mail as fast as it can. On request it does what relays do on their bad days: it refuses a
// recipient, answers 451 to the final dot, closes the connection after storing the message, or falls silent.
// The recipient's address decides that (see Options.Respond), or a function of the test. It keeps the mail
// that it accepted in memory until it is closed, and has no limits but its own.
//
// [StartPostfix] runs a separate instance on a free port of the loopback interface. It delivers all mail for
// example.net into one maildir and sends nothing out, unless a test says so. It needs Debian's postfix and,
// as Postfix does, root. Without them the test fails with a sentence that says what to do.
//
// The package is never part of the product.
package testsmtp
