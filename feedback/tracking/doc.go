// Package tracking counts opens and clicks for the senders of mail: whoever fetches the picture of a mail, or follows one of its links,
// becomes an event on the timeline of the message. Package links writes picture and links into the mail; the server answers the hits.
//
// [Tracking.Open] and [Tracking.Click] read the token of a hit, note it in memory, and return at once. [Tracking.Run] hands what was noted
// to the [Inbox] in batches. Hits stay in memory for two seconds before that, so that the third link that a program follows at once shows
// what followed the first two.
//
// Hits of programs are told apart by the rules of machine.go, which the glossary of reasons names. They are counted apart, and never thrown
// away: the event says that a program did it, and which rule says so.
//
// It promises:
//   - Only what a token says is noted. A forged one is noted as nothing, and leads nowhere: the target of a click stands in its token.
//   - A hit waits for nothing: not for Redis, not for a hit before it. Links and pictures work while Redis is away.
//   - What is kept in memory is bounded, by number and by bytes. Beyond that the oldest hits go, and are counted as dropped.
//   - Hits of one visitor on one link, or picture, within the same second are one. The same hit has the same key in every process.
//   - Of a visitor as much is kept as Options.Address says, and nothing where the browser asks for that (Sec-GPC, DNT).
//
// It never looks a message up, never answers HTTP, and never judges by anything that only one provider's machines can be told by, such as
// lists of addresses.
//
// It owns no Redis keys. When the inbox fails, hits wait in memory and are tried again every second; a process that is killed loses those
// of the last two seconds, and those that waited. One that is stopped hands over what it has, for as long as Options.Grace allows.
package tracking
