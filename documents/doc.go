// Package documents finds any mail again: it keeps a search index of messages, follows what happens to them, and answers what people and
// programs look for, long after the email log has forgotten.
//
// It promises that
//   - every message is found soon after it was accepted (a second or two), and as it stands soon after each change;
//   - nothing it does delays mail: it reads the event stream behind the outbox's back, and works in a queue of its own, which may be paused;
//   - what was missed is made up for by itself: after trouble, a long pause, or the loss of the index, it reads the email log again;
//   - whoever may see one account's mail only finds that, and counts of that;
//   - a query ends within [Options.SearchTimeout], whatever was typed.
//
// It never changes a message, never keeps more text of one than [Options.MaxText], and never is the truth: the outbox is.
//
// # How
//
// A reader (group "documents" of the stream "events") turns events into tasks of the queue documents, which name messages. A worker asks the
// outbox how these stand, and puts them into an [Index], one batch each; then the outbox is told that it need not keep their text any
// longer. What is read carries a revision that rises with each reading, and a document never replaces one of a higher revision: so
// tasks may come in any order, twice, and side by side.
//
// When more than [Options.MaxWaiting] tasks wait, the reader stops making them and notes since when ("behind"). Once the queue is short
// again, the email log is read from then on. A rebuild makes an index beside the one in use, from what that has and from the log.
//
// # Keeper
//
// One process keeps the index: it forgets what is too old, makes up for what was missed, rebuilds. It holds a claim in Redis, renewed every
// few seconds, that another process can take over after half a minute of silence. An embedded index belongs to one process altogether,
// so only its keeper takes tasks and answers searches. An index that was not the last one kept is filled from the log first.
//
// # Redis
//
// postroom:{0}:documents:keeper, the claim; :index, which index was kept last; :revision, the last revision; :behind and :filling, since when
// changes are missing, and which of them are being made up for; :state, the size of the index for other processes; :rebuild, the
// rebuild that is wanted, runs, or was the last. The group "documents" of each partition's events.
//
// # When things fail
//
// The index fails: tasks come back, later each time up to a minute apart; nothing is lost. Redis away: nothing to read, and nothing is; searches go
// on. A process dies: its tasks are taken by others, its claim runs out. The index is lost: the messages that the log remembers come back,
// without the texts of those that ended.
package documents
