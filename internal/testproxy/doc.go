// Package testproxy stands between a client and a server in tests, and breaks the connection on request:
// refuse, cut, hang, delay, swallow the answers, break in the middle of a word; for all clients, or
// for those who log in with a certain name. It lets a test unplug Redis,
// or an SMTP relay, at the moment it chooses, without touching either end.
package testproxy
