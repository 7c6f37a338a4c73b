// Package tracking counts opens and clicks. A request for the picture of an email, or for one of its links,
// becomes an event on the timeline of the message. Package links writes picture and links into the mail; the
// server answers the requests, which are called hits.
//
// [Tracking.Open] and [Tracking.Click] read the token of a hit, note it in memory, and return immediately.
// [Tracking.Run] passes hits to the inbox (package feedback) in batches. Each waits two seconds before that,
// so that when a bot follows several links together, the third link marks the first two as well.
//
// The rules in bot.go mark hits of bots; the glossary lists their names. Such hits are counted apart, and
// never dropped: the event has the mark, and the name of the rule.
//
// It promises:
//   - Only the content of a token is noted. A forged token is noted as nothing, and leads nowhere: the target
//     of a click stands in its token.
//   - A link leads nowhere, and is not counted, if Options.Blocked has the host of its target, or its
//     message, or if it is of a preview.
//   - A hit waits for nothing: not for Redis, not for other hits. Links and pictures work while Redis is
//     unavailable.
//   - Memory is bounded, by number and by bytes. Beyond that the oldest hits are dropped and counted.
//   - Hits of one visitor on one link, or picture, within the same second are one. A hit has the same key in
//     every process.
//   - Options.Address bounds what is stored about a visitor. Nothing is stored if the browser asks for that
//     (Sec-GPC, DNT).
//
// It never looks a message up, never answers HTTP, and has no rules that fit one provider only, such as lists
// of addresses.
//
// It owns no Redis keys. When the inbox fails, hits wait in memory and are tried again every second. A killed
// process loses the hits of the last two seconds, and the waiting hits. A stopped process passes them on
// within Options.Grace.
package tracking
