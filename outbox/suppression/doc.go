// Package suppression stores the addresses and domains that must not be sent to, and why. The outbox checks
// it when it accepts a message and again when an attempt begins. Feedback and unsubscribe add bounces,
// complaints and unsubscribes. Operators edit it.
//
// # Entries
//
// An entry is about an address, or about a domain. A domain stands for all of its addresses, but not for its
// subdomains. An entry holds for the whole instance, one account, or one list of an account. Lists of two
// accounts are separate even if they have the same id. An entry has one [Reason], a source, and evidence: the
// message and the reply behind it. An address may have several entries, even in one scope: a recipient who
// unsubscribed and bounced is still unsubscribed when the bounce has expired.
//
// Addresses are compared without regard to case, domains as A-labels (IDNA). A tag after a plus belongs to
// the address, because only its own server knows whether it has a meaning. Ids of lists are compared without
// regard to case too (RFC 2919 section 6).
//
// An erased person has no entry, but a keyed hash of the address ([Store.Erase]), which stops all mail. No
// entry about such an address is added in its scope.
//
// # Promises
//
//   - [Store.Check] checks all recipients of a message in every scope with one round trip. In a Cluster it
//     makes one to each node concerned, at the same time.
//   - A script of another package can itself check whether a message has any entry at all ([Store.Look],
//     [LookLua]). The result holds while the version is the same ([Store.VersionKey]). Every script that adds
//     entries raises the version, whether it changes anything or not. A lost version never comes back. There
//     is none where a script cannot use keys of several partitions, as in a Cluster.
//   - hard_bounce, spam_report and manual stop all mail. An unsubscribe from an account stops its bulk mail
//     and mail of its lists. One from a list stops mail of that list. Other transactional mail passes: a
//     recipient who unsubscribed from the newsletter still gets the invoice.
//   - An exported file has no formula for a spreadsheet, and is read back unchanged.
//   - Each entry is added by one script, so counts, indexes and evidence agree with it. Adding it again can
//     only prolong it, so every import and every fact may be repeated.
//   - If two entries have the same reason and scope, the longer one stays. If there are several reasons,
//     [Store.Check] returns the strongest: manual, then spam_report, hard_bounce, unsubscribe.
//   - An expired entry stops nothing from that second on. It is removed within about an hour.
//   - Requests and imports add nothing beyond the quota of an account ([Options].Room). Bounces, complaints
//     and unsubscribes have none ([Store.Add]).
//   - [Store.Add] returns when redis.waitReplicas replicas have the entries: a confirmed unsubscribe survives
//     a failover.
//   - [Providers] imports the lists of providers page by page, in one process at a time. If the process dies,
//     another one continues.
//
// The package never sends, never decides what a reply means, and never holds the list in memory.
//
// # Redis
//
// docs/redis-keys.md lists the keys. Entries are fields of small hashes, the 262,144 buckets. Redis keeps a
// hash of up to 128 fields as a compact list (listpack), so this holds for up to some twenty million entries.
// The bucket follows from the address alone, so all scopes of an address share one. A list of ten entries
// costs no more than its ten fields and a small index. The number of buckets is fixed: an entry never moves,
// and a lookup needs no directory. At worst this wastes 20 MB (a bucket for each of a few hundred thousand
// entries). Above twenty million entries Redis turns buckets into hash tables, which work as before and need
// twice the memory.
//
// The buckets are spread over the 16 key prefixes postroom:{0} to postroom:{15}, independent of
// redis.partitions. That setting may change, and an entry looked up in the wrong place is an email to a
// recipient who complained.
//
// A field or value of more than 64 bytes would turn its bucket into a table too. So evidence is stored apart,
// and an entry with a longer name is stored under a digest, with the name in the evidence.
//
// Lists and counts by scope and reason come from counters and from bitmaps of the buckets with such entries,
// not from a scan. A list is in the order of the buckets, which is stable but has no meaning.
//
// # Failures
//
// If Redis is unreachable, calls return fault.Unavailable, and the caller must not mail anybody. A process
// that dies during [Store.Add] has added some of the entries; adding them again completes it.
package suppression
