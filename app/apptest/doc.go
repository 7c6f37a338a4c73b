// Package apptest runs a whole Postroom for tests outside of it, such as the tests in e2e and the examples'.
// It runs on a free port, with its own data directory, until the test ends. Spawn runs it as a process, for
// tests that kill it. The package also has the steps that such tests share.
package apptest
