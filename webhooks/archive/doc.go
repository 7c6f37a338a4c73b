// Package archive keeps every event, and every entry of the audit log, permanently, outside Redis. It writes
// one JSON object per line, to one file a day, or to a column store that takes such lines by POST
// (ClickHouse, or a collector such as Vector). Redis keeps events only for a while.
//
// It promises:
//   - Every event of the stream is written at least once, even if a process dies. Its eventId identifies a
//     repetition.
//   - The stream in Redis never waits for the store. Events that cannot be sent are stored on the disk of the
//     process, up to Options.MaxSpool bytes, and sent in order when the store is back. Beyond that the oldest
//     are dropped, counted and logged: disks are for mail first.
//   - Events that the store refuses for their content go to a file named refused-…; the others continue.
//
// It never changes an event, reads nothing back, and delays nothing: it is one more reader of the stream.
//
// An entry of the audit log is a line like an event, of the kind audit.
//
// It owns no Redis keys except the group "archive" of the streams events, which outbox owns, and audit, which
// internal/audit owns. [Leave] removes the groups where there is no archive: a group without readers would
// keep the stream of events from being trimmed. The audit log is trimmed whether or not it was archived.
//
// When the disk is full or gone, events wait in Redis, and the log says so.
package archive
