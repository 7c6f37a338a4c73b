// Command durability measures what it costs to lose less: how long a submit takes, and how many are accepted
// a second, at each level of durability that docs/operations.md describes, side by side in one run. What
// counts are the ratios to appendfsync everysec.
//
// Each level has a redis-server of its own, with a replica where it is about replicas, and a Postroom that
// accepts and does not deliver. All take turns, several times over, so that whatever else the machine does at
// the moment hits all of them; of each figure the best round counts, since what else the machine does only
// ever adds. Replicas stand on the same machine: the way to another one comes on top, once for each submit
// that is waited for.
package main
