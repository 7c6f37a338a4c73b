// Package testpostfix runs a real Postfix for tests: an instance of its own, on a free port of the loopback
// interface, that delivers all mail for example.net into one maildir and sends nothing out, but where a test
// says so.
//
// It needs Debian's postfix and, as Postfix does, root. A test that can't have it fails, with a sentence that
// says what to do.
package testpostfix
