// Package erasure erases a person everywhere, and exports a person's data. A person is an address.
//
// An erasure is a durable task. It visits the stores one after another ([Store]), and counts what each had of
// the person. The first store stops all mail to the address by a keyed hash (package suppression). So nothing
// comes in again behind the erasure. Stores that read much, such as the email log, are read in pages.
//
// It promises that
//   - an accepted erasure is finished, even if processes die: another one continues with the interrupted
//     store. A store may be visited twice, and finds only what is left;
//   - one call more for the same person and account answers the erasure under way;
//   - the receipt counts each thing at least once: counts are stored before the data is erased. After a crash
//     some may be counted twice;
//   - the receipt names no one. It has a keyed hash of the address, the counts, and a description of what
//     Postroom does not reach. The address is stored sealed until the erasure ends, and then nowhere;
//   - with an account, no other account's data is touched.
//
// It never decides what a store has of a person: the packages of the stores do.
//
// # Redis
//
// All keys are in partition 0:
//
//   - erasure:<id>: an erasure as JSON, for three years. The sealed address is in it while it is under way.
//   - erasures: sorted set of the ones under way, by the end of the working process' lease.
//   - erasure-of:<hash>: the erasure under way of a person and account.
//
// # Failures
//
// A store that fails is tried again after some seconds; until then the receipt says why. If Redis is
// unreachable, the lease ends and the erasure waits.
package erasure
