// Package why answers for operators whether an address got its mail, and why not.
//
// It joins what the other packages know of the address: the email log with its events, the search index,
// suppressions, accounts, paused queues, subscribers, campaigns, digests and webhook deliveries. The answer
// is a list of findings, the most important first. The sentence of the answer is the text of the first one.
//
// The fate of the newest message comes first, or that of the message that was asked about. If the last mail
// went out, but something has stopped mail since, that comes first: it explains the mail that is missing.
// Then comes what stops mail to the address now, then what became of other messages.
//
// It promises that
//   - a source that fails, or takes longer than [Options.Patience], is named in the answer. The answer is
//     then that of the other sources. If the email log could not be asked, it never says that nothing was
//     submitted;
//   - "yes" needs a proof: an open or a click by a person, a complaint, an unsubscribe, or a report of
//     delivery. A relay's 250 is none, and neither is an open by a bot, or one of several recipients;
//   - with an account, nothing of other accounts and of the instance is told;
//   - other recipients of a message are not named.
//
// It never changes anything, never connects to a relay, and logs no address.
//
// It has no keys in Redis. The outbox finds messages by their recipients; the search index finds those
// that are not in the log any more.
package why
