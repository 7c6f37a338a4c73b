// Package audience stores the audience of newsletters: accounts' lists, their subscribers, and each
// subscriber's consents. Operators and programs change it through the API, and visitors through forms.
//
// # Words
//
// A subscriber is an address of an account, with a name, attributes and tags. No two subscribers of an
// account have one address, compared as suppressions are. A subscription is the state of a subscriber on a
// list:
//
//	none ── asked ──▶ pending ── confirmed ──▶ subscribed
//	none ── with a consent, or on a list of single opt-in ──▶ subscribed
//	pending, subscribed ── leaves ──▶ left
//	left ── asked again ──▶ pending
//	left ── called back, with a consent ──▶ subscribed
//
// An unconfirmed pending subscription is removed. If it was unsubscribed before, it is again.
//
// # Promises
//
//   - Two changes at the same time do not mix: each is applied to the result of the other.
//   - The state of a subscription, the list's index and its counts change in one script, so they agree.
//   - People who unsubscribed are not subscribed again without a consent and the caller's request. People who
//     bounced or complained are not even then. The suppressions decide; see package suppression.
//   - To leave a list adds the suppression first. So either of both, list state and suppression, stops mail.
//   - An event tells once who confirmed a subscription, and who left a list. It is written with the change.
//   - Each state keeps its proof: time, source, words, and the network of the visitor without its last bits.
//   - A subscriber's place (ordinal) is never given to another address, so counts by ordinal stay true.
//   - A segment may select by what people did with campaigns ([Campaigns]), which is read for a chunk of
//     people together. A campaign that does not exist selects no one.
//
// The package never sends campaigns, and never holds an account's subscribers in memory.
//
// Confirmations ask by mail and take the answers ([Confirmations]). Their promises:
//
//   - A pending person gets the mail that asks, and nothing else. Only its link confirms, by a POST.
//   - A public form has one result for every address, and changes nothing else of one that is known.
//   - No email has text that only a form provided, so anonymous clients can't send their texts to others.
//   - A list's welcome goes out once. A crash after the confirmation is made good by the next press of the
//     button, within an hour. A crash before the mail that asks leaves a pending subscription.
//
// # Redis
//
// docs/redis-keys.md lists the keys. Subscribers have dense ordinals in their account. A page holds the
// records of 32, and a chunk is 2,000 pages. All keys of a chunk, including list states, have the prefix
// postroom:{chunk mod 16}, whatever redis.partitions is: that setting may change. So one script can change a
// page's records together with the list states.
//
// A list's states of a chunk are a string: for few members their offsets and states, for many two bits for
// each subscriber of the chunk (lua/write.lua). A list costs what its members cost, not what the account has.
//
// An address finds its ordinal by an index of 262,144 small hashes, over the same 16 prefixes. The index
// entry is written before the record and removed after it. So an entry may have no record, or the record of a
// subscriber whose address was changed. Readers compare the address, and the next subscriber with that
// address takes the entry over.
//
// In a Cluster a script reaches one slot, so events of subscribers wait in a stream of their shard. Run hands
// them on to the stream of all events. After a crash one may come twice, under its id.
//
// Lists are records of partition 0 (package records). Consents share their words: a subscription refers to
// them by number.
//
// # Failures
//
// If Redis is unreachable, calls return fault.Unavailable, and each subscriber is changed completely or not
// at all. If a process dies while it deletes a list, or removes unconfirmed subscriptions, the next call or
// the next hour does the rest.
package audience
