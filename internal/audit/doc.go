// Package audit records who did what: every change of an operator or a program, logins, and requests that
// were refused. The API, the pages, the dashboard of the queues and the SMTP inlet report to it.
//
// # Promises
//
//   - No change without an entry. [Log.Do] first stores an intent, then makes the change, then replaces the
//     intent with the entry and its result. If the intent can't be stored, as while Redis is unreachable, the
//     change is not made.
//   - A crash between the two leaves the intent. Ten minutes later a process writes an entry with the result
//     begun: whether the change was made is unknown, and the record itself shows it. The same holds if Redis
//     goes away in between: the change keeps its result, and the log of the process names it.
//   - Entries are never changed. Each carries the hash of the one before, and a MAC by a key derived
//     from the instance's secret. [Log.Verify] notices an entry that was changed, added, deleted or
//     moved.
//   - Secrets are masked: the ones that the packages of the records mask, and every field that is named like
//     one. A secret that was replaced shows as ****** before and after.
//   - Refused changes can't fill the log. Refusals and logins over SMTP are folded by actor, address and
//     route, and refused changes by actor and address: one entry after the first minute, then one an hour
//     with their number. A process writes at most [MaxFolded] such entries an hour; one entry counts the
//     others.
//
// # An entry
//
// The text of an entry is one line of JSON ([api.AuditEntry]), as GET /v1/audit/export returns it:
//
//   - who.kind is token (a program or the command line), person (in a session, with the name), session
//     (opened with a token), smtp, anonymous (without a valid token) or system (postroom secret rotate).
//     who.session is the same for everything done in a session. A refused login has the user's name.
//   - result is done, refused (with the reason), failed or begun. begun means that the result is unknown,
//     because the process died or the change took over ten minutes; since says when it started.
//   - changes has the fields that differ. Values over 200 bytes are cut. If a change has no single record,
//     such as cancelling many messages, it has the request instead.
//   - hash is the SHA-256 of the line without hash, key and mac. key identifies the secret of the mac.
//
// # The chain
//
// The hash of an entry is the SHA-256 of its text, which holds the hash of the entry before and the entry's
// number. So the MAC of an entry vouches for all before it. After the secret was replaced, older entries
// can't be checked by their own MAC any more. They are vouched for by the entry that postroom secret rotate
// writes, after it verified them.
//
// Entries are trimmed by age once an hour, and by number as they are written, oldest first, after they were
// verified. A signed checkpoint then has
// number and hash of the last one trimmed, where the chain begins.
//
// Somebody who writes to Redis can cut off the newest entries together with the head, and the rest is a valid
// chain. Against that, every process remembers the newest entry it wrote or saw, and raises auditBroken when
// it is gone. The log has the head at each verification, the archive has the entries within a second, and
// Verify compares with a head noted elsewhere. If all processes are stopped, without an archive and a noted
// head, a cut tail can't be noticed. The same holds for anyone who knows the secret.
//
// # Concurrency
//
// One script moves the head of the chain, if it is still the one that the entry was made for. Otherwise it
// answers the new head, and the entry is made again. Within a process entries queue up for that.
//
// # Redis
//
// All keys are in partition 0:
//
//   - audit: stream of entries; fields e (text), h (hash), k (key) and m (MAC). Its ids rise with the time.
//   - audit:head: hash of id, seq and hash of the newest entry.
//   - audit:intents: hash of the changes that have no entry yet, by a random name: JSON.
//   - audit:checkpoint: hash of id, seq, hash, key and mac: where the chain begins.
package audit
