// Package apptest runs a whole Postroom for tests that stand outside of it, such as those of the folders e2e
// and of the examples: on a free port, with a data directory of its own, until the test ends. Spawn runs it
// as a process, for tests that kill it. Beside it are the steps that such tests share.
package apptest
