// Package search keeps a search index of messages, follows their changes, and answers searches for
// operators and programs, long after the email log dropped the messages.
//
// It promises that
//   - a search finds every message that was accepted a second or two ago, in the state that it had then,
//     unless the index is behind;
//   - it never delays mail: it reads the event stream and works in its own queue, which may be paused;
//   - it recovers automatically what it missed: after a failure, a long pause, or the loss of the index, it
//     reads the email log again;
//   - a caller bound to an account finds and counts only mail of that account;
//   - a query ends within [Options.SearchTimeout].
//
// It never changes a message and never keeps more of its text than [Options.MaxText]. The outbox is the
// truth, not the index.
//
// # How
//
// A reader (group "documents" of the stream "events") turns events into tasks of the queue documents, which
// name messages. It gathers them for ten seconds while no one searches. The first search after a minute waits
// for what was gathered. A worker reads the state of these messages from the outbox and puts them into an
// [Index], one batch each. Then it reports to the outbox that their text may be dropped. Each reading has a
// rising revision, and a document never replaces one with a higher revision, so tasks may come twice, in any
// order, and in parallel.
//
// When more than [Options.MaxWaiting] tasks wait, the reader makes no more and stores the time ("behind").
// When the queue is short again, the email log is read from that time on. A rebuild makes a second index from
// the one in use and from the log.
//
// # Indexer
//
// One process is the indexer: it deletes old documents, reads missed changes, rebuilds. It holds a claim in
// Redis, renewed every few seconds. Another process takes the claim over after half a minute of silence. An
// embedded index belongs to one process, so only its indexer takes tasks and answers searches. An index other
// than the last one kept is filled from the log first.
//
// # Redis
//
// postroom:{0}:documents:indexer, the claim; :asked, there after a search; :index, the last index kept;
// :revision, the last revision; :behind and :filling, the time since which changes are missing, and the time
// from which they are being read; :state, the size of the index for other processes; :rebuild, the wanted,
// running or last rebuild; :reclaim, there while files of the index may have deleted documents of an erased
// person; :erased, the documents that erasures deleted in the last day, which must not be written again. The
// group "documents" of each partition's events.
//
// # When things fail
//
// If the index fails, tasks come back, later each time, at most a minute apart; nothing is lost. If Redis is
// unreachable, nothing is indexed, but searches work. If a process dies, others take its tasks and its claim
// expires. If the index is lost, messages of the log come back, without the texts of ended messages.
package search
