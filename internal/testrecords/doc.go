// Package testrecords has what the tests of packages that keep records share: a clock with a time to begin
// with, the key ring of an instance, and the fields that a refusal names.
package testrecords
