// Package testrecords has what the tests of packages that keep records share: a clock that a test moves, the key ring of an instance, and
// the fields that a refusal names.
package testrecords
