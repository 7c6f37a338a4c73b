// Package testkit makes certificates for servers under test: files with a certificate for this machine that
// signs itself, and the pool that trusts it.
//
// # Records
//
// It also has what the tests of packages that keep records share: a clock with a time to begin
// with, the key ring of an instance, and the fields that a refusal names.
package testkit
