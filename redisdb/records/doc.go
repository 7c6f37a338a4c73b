// Package records keeps what people change and every process uses: for accounts, relays, dkim and templates,
// whose accounts, gateways, keys of domains and templates are records of four kinds. A [Kind] says where its
// records stand and which of their fields are secret; a [Store] reads, changes, lists and deletes them.
//
// It promises:
//   - Two changes at the same time do not mix: [Store.Change] applies the later one to the result of the
//     earlier one.
//   - Records that must agree with each other, as templates and what they include, can be changed on terms
//     that none of all was changed meanwhile ([Store.PutAt], [Store.DeleteAt]).
//   - Secrets are sealed before they reach Redis, each bound to its record and field, so that a sealed value
//     copied elsewhere opens nothing. Sealed values do not leave the package: [Store.Open] gives secrets in
//     clear, everything else gives ****** ([Mask]) instead.
//   - Storing ****** keeps the secret there was, but only while the places it goes to stay the same
//     ([Secret].Goes): who may change a record can't have its secrets sent to a host of their own.
//   - [Store.Reseal] puts secrets under the present secret of the instance, beside running processes, and
//     loses no change to it.
//   - Each change raises a version, by which a [redisdb.Cache] in every process learns of it within a second.
//
// It remembers nothing itself, checks no values, and does not know what the state of a record means: what a
// record met is written by the scripts of its package, and goes with the record.
//
// # Redis
//
// All keys are in partition 0, none of them expires, and docs/redis-keys.md lists them with the packages:
// <key>:<id> (hash: record, which is JSON, and revision, which is another one after each change),
// <key>:<id>:state (hash, if the kind has a state), <index> (sorted set of ids, all of score 0: in the order
// of the alphabet), <index>:version.
//
// When Redis is away, calls answer Unavailable. A record whose secrets don't open (the instance's secret was
// changed) can still be shown, changed and deleted.
package records
