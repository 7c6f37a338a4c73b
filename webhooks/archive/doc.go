// Package archive keeps every event for good, outside Redis, for whoever analyses mail: as files of one JSON
// object a line, one file a day, or in a column store that takes such lines by POST (ClickHouse, and what
// collects for others, such as Vector). Redis, which keeps what mail needs, forgets events after a while.
//
// It promises:
//   - Every event that Postroom tells is written at least once, whatever dies meanwhile; its eventId tells a
//     repetition from another event.
//   - The stream in Redis never waits for the store: what can't be sent is put aside on the disk of the
//     process, up to Options.MaxSpool bytes, and sent when the store is back, in order. Beyond that the
//     oldest is dropped, counted and logged: disks are for mail first.
//   - What the store refuses for its content is kept in a file beside, named refused-…, and the others go on.
//
// It never changes an event, reads nothing back, and slows nothing down: it is one more reader of the stream.
//
// It owns no Redis keys but the group "archive" of the stream events, which outbox owns. [Leave] takes the
// group away where there is no archive: a group nobody reads for would keep the stream from being trimmed.
//
// When the disk is full or gone, events wait in Redis, and the log says so.
package archive
