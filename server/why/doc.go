// Package why answers for operators whether an address got its mail, and why not.
//
// It joins what the other packages know of the address: the email log with its events, the search index,
// suppressions, accounts, paused queues, subscribers, campaigns, digests and webhook deliveries. The answer
// is a list of findings, the most important first. The sentence of the answer is the text of the first one.
//
// The fate of the newest message comes first, or of the message that was asked about. If the last mail went
// out, but something has stopped mail since, that comes first: it explains the missing mail. Then comes what
// stops mail to the address now, then the other messages' fates.
//
// It promises that
//   - a source that fails, or takes longer than [Options.Patience], is named in the answer. The answer then
//     comes from the other sources. If the email log could not be asked, it never says that nothing was
//     submitted;
//   - "yes" needs a proof: an open or a click by a person, a complaint, an unsubscribe, or a delivery report.
//     A relay's 250 isn't a proof, and neither is an open by a bot, or by one of several recipients;
//   - with an account, nothing about other accounts and the instance is shown;
//   - other recipients of a message are not named.
//
// It never changes anything, never connects to a relay, and logs no address.
//
// It has no keys in Redis. The outbox finds messages by their recipients; the search index finds messages
// that are not in the log any more.
package why
