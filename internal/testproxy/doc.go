// Package testproxy stands between a client and a server in tests, and breaks the connection on request. It
// can refuse, cut, hang, delay, swallow the answers, or break in the middle of a word, for all clients, or
// for clients that log in with a certain name. It lets a test unplug Redis, or an SMTP relay, at the moment
// it chooses, without touching either end.
package testproxy
