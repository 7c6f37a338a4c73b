// Package unsubscribe does what recipients ask for: to hear no more of a list or of a sender, and to hear of them again. It serves the
// public pages and the one-click button of mail clients (RFC 8058), which package server answers.
//
// Whoever asks has a token that stood in a mail to them (package signedtoken): it names the message, the account, the list and the address, is
// sealed, and can't be made up. There is nothing to log in to.
//
// # What it promises
//
//   - A wish is in the suppression list before it is answered: the next look at that list, which every attempt of a delivery begins with,
//     finds it. When the list can't be written, the answer is an error, never a success.
//   - Asking twice is asking once: repeating a wish changes nothing, and makes no second event.
//   - The event, listUnsubscribe or listSubscribe, goes into the inbox of feedback, and from there onto the timeline of the message and to
//     webhooks. Where the inbox can't take it, the wish holds even so; that is logged and counted, and a repetition within an hour tells it.
//   - Nobody subscribes away what they did not say themselves: a hard bounce, a complaint or an operator's entry stays, and isn't shown.
//   - A token that was forged, or cut off by a mail client, says nothing: the answer is NotFound.
//
// It never decides what an unsubscribed address still gets: that is the lane rule of package suppression. It never confirms by mail, never
// asks why, and owns no Redis keys.
//
// # When it fails
//
// Redis away: [Service.Unsubscribe] and [Service.Resubscribe] fail with fault.Unavailable, and mail clients try again. The keys that signed a
// mail are gone (secretPrevious was taken away): its links are unknown for ever, which is why docs/unsubscribe.md says how long to keep them.
package unsubscribe
