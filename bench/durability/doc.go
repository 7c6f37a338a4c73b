// Command durability measures the cost of durability: how long a submit takes, and how many are accepted a
// second, at each level that docs/operations.md describes, side by side in one run. The results are the
// ratios to appendfsync everysec.
//
// Each level has a redis-server of its own, some with a replica, and a Postroom that accepts and does not
// deliver. All take turns, several times, so that other load on the machine affects all of them. Of each
// figure the best round counts, because other load only makes it worse. Replicas are on the same machine: a
// network adds one round trip for each submit that waits.
package main
