// Package suppression keeps whom not to mail, and why: for outbox, which asks as it accepts a message and again as it begins an attempt; for
// feedback and unsubscribe, which learn of bounces, complaints and wishes; and for the operator.
//
// # What an entry says
//
// An entry is about an address, or about a domain and so all of its addresses (not about its subdomains). It holds for the whole
// instance, for one account, or for one list, and has one [Reason], a source, and evidence: the message and the reply that brought it
// about. An address may have several entries, also of several reasons in one scope: who unsubscribed and bounced is still unsubscribed
// when the bounce has expired.
//
// Addresses are compared without regard to case, domains as A-labels (IDNA); a tag after a plus belongs to the address, since only its own
// server knows whether it means anything. Ids of lists are compared without regard to case too (RFC 2919 section 6).
//
// # What it promises
//
//   - [Store.Check] answers for a message with all its recipients, in every scope, with one round trip (in a Cluster: one to each node
//     concerned, at the same time).
//   - A script of another package can ask itself whether there is anything at all about a message ([Store.Look], [LookLua]), and what it
//     found still holds at the same version ([Store.VersionKey]): every script that adds entries raises it, whether it changes anything or
//     not. A version that was lost never comes back. There is none where a script can't use keys of several partitions, as in a Cluster.
//   - hard_bounce, spam_report and manual stop every mail. An unsubscribe stops bulk mail, and mail of the very list it is about;
//     transactional mail passes it: who left the newsletter still gets the invoice.
//   - Each entry is added by one script: counts, indexes and evidence agree with it. Adding it again changes nothing but to prolong it, so
//     every import and every fact may be repeated.
//   - Of two entries of the same reason and scope the longer one stays. Of several reasons [Store.Check] tells the strongest: manual, then
//     spam_report, hard_bounce, unsubscribe.
//   - An entry that has expired stops nothing from that second on. It is swept away within an hour or so.
//   - [Store.Add] returns when the replicas of redis.waitReplicas have what was added: a wish that was confirmed survives a failover.
//
// It never sends, never decides what a reply means, and never holds the list in memory.
//
// # Redis
//
// docs/redis-keys.md lists the keys. Entries are fields of small hashes: 262,144 buckets, which Redis keeps as compact lists (listpacks) up
// to 128 fields, so up to some twenty million entries. The bucket follows from the address alone, so all scopes of an address share one,
// and a list of ten costs no more than its ten fields and a small index. The number is fixed: an entry never moves, no look-up ever has to
// ask where. It wastes 20 MB at worst (a bucket for each entry, at a few hundred thousand of them), and above twenty million entries Redis
// turns buckets into hash tables, which work as before and need twice the memory.
//
// The buckets are spread over the 16 key prefixes postroom:{0} to postroom:{15}, whatever redis.partitions says: that setting may be changed, and
// an entry that is looked for in the wrong place is a mail to somebody who complained.
//
// A field or value of more than 64 bytes would turn its bucket into a table too. Evidence therefore stands apart, and an entry whose name
// is longer is filed under a digest, with the name beside the evidence.
//
// Lists and counts by scope and reason come from bitmaps of where such entries are and from counters, not from a scan. The order of a
// list is that of the buckets: stable, but of no meaning.
//
// # When it fails
//
// When Redis is away calls answer fault.Unavailable, and nobody may be mailed on that ground. A process that dies in the middle of [Store.Add] has
// added some of the entries; adding them again completes it.
package suppression
