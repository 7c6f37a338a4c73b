// Package apptest runs a whole Postroom for tests that stand outside of it, such as those of the
// examples: on a free port, with an embedded Redis and a data directory of its own, until the test ends.
package apptest
