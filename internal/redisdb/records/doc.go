// Package records stores what operators change and every process uses: accounts, gateways, DKIM keys of
// domains, and templates. Each is a kind of record. A [Kind] names its keys in Redis and its secret fields. A
// [Store] reads, changes, lists and deletes the records of one kind.
//
// It promises:
//   - Two changes at the same time do not mix: [Store.Change] applies the later one to the result of the
//     earlier one.
//   - Records that must agree with each other, for example templates and their partials, can be changed on
//     condition that no record changed in between ([Store.PutAt], [Store.DeleteAt]).
//   - Secrets are sealed before they reach Redis. Each is bound to its record, its field and the place it
//     goes to ([Secret].Goes). So a sealed value copied elsewhere, or whose host was changed, does not open.
//     Sealed values do not leave the package: [Store.Open] returns secrets in clear, every other method
//     returns ****** ([Mask]) instead.
//   - Storing ****** keeps the stored secret, but only while the place it goes to stays the same. So people
//     who may change a record can't have its secrets sent to their own host.
//   - [Store.Reseal] seals secrets under the instance's current secret. It may run while other processes do,
//     and loses none of their changes.
//   - Each change raises a version, by which a [redisdb.Cache] in every process notices it within a second.
//
// It caches nothing, checks no values, and does not interpret the state of a record. Scripts of the kind's
// package write the state, and deleting the record deletes it.
//
// # Redis
//
// All keys are in partition 0, and none expires. docs/redis-keys.md lists them with the packages:
// <key>:<id> (hash: record, which is JSON, and revision, which each change replaces), <key>:<id>:state (hash,
// if the kind has a state), <index> (sorted set of ids, all of score 0: in alphabetical order),
// <index>:version.
//
// If Redis is unreachable, calls return Unavailable. A record whose secrets don't open (the instance's secret
// was changed) can still be read, changed and deleted.
package records
