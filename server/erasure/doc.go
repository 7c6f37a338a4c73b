// Package erasure erases a person everywhere, and exports what is there of a person. A person is an address.
//
// An erasure is a durable task. It visits the stores one after another ([Store]), and counts what each had of
// the person. The first store stops all mail to the address by a keyed hash (package suppression). So nothing
// comes in again behind the erasure. Stores that read much, such as the email log, are read in pages.
//
// It promises that
//   - an erasure that was accepted is finished, whatever process dies: another one goes on with the store
//     that was interrupted. A store may be visited twice, and finds only what is left;
//   - one call more for the same person and account answers the erasure under way;
//   - the receipt counts each thing once at least: counts are stored before what they count is erased. What a
//     crash interrupted may be counted twice;
//   - the receipt names nobody. It has a keyed hash of the address, the counts, and in words what Postroom
//     does not reach. The address is stored sealed until the erasure ends, and then nowhere;
//   - with an account, nothing of other accounts is touched.
//
// It never decides what a store has of a person: the packages of the stores do.
//
// # Redis
//
// All keys are in partition 0:
//
//   - erasure:<id>: an erasure as JSON, for three years. The sealed address is in it while it is under way.
//   - erasures: sorted set of those under way, by the end of the lease of the process that works on it.
//   - erasure-of:<hash>: the erasure under way of a person and account.
//
// # Failures
//
// A store that fails is tried again after some seconds; the receipt says why meanwhile. If Redis is
// unreachable, the lease ends and the erasure waits.
package erasure
