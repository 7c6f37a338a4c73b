// Package testcert makes certificates for servers under test: files with a certificate for this machine that
// signs itself, and the pool that trusts it.
package testcert
