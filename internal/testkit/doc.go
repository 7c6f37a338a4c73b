// Package testkit holds what the tests of many packages need:
//
//   - [Clock], which stands still unless a test moves it;
//   - [FreePort] and its siblings, ports for servers that take theirs from the command line;
//   - [Certificate], files with a self-signed certificate for this machine, and the pool that trusts it;
//   - [Ring], the key ring of an instance, and [WrongFields], the fields that a refusal names;
//   - [CPUUsed], the processor time of a function, which tests bound instead of time on a busy machine.
package testkit
