// Package unsubscribe carries out unsubscribe requests of recipients, from a list or a sender, and takes them
// back. It is behind the public pages and the one-click button of mail clients (RFC 8058), which package
// server answers.
//
// A visitor has a token from an email (package signedtoken). It names the message, the account, the list and
// the address, is sealed, and cannot be forged. There is no login.
//
// # What it promises
//
//   - A request is in the suppression list before it is answered. Every attempt of a delivery reads that list
//     first. If it cannot be written, the answer is an error, never a success.
//   - A repeated request changes nothing, and makes no second event.
//   - The event, listUnsubscribe or listSubscribe, goes into the inbox of feedback, and from there onto the
//     timeline of the message and to webhooks. If the inbox fails, the request is carried out even so. That
//     is logged and counted, and a repetition within an hour puts the event in again.
//   - A visitor can only withdraw an unsubscribe request. A hard bounce, a complaint or an operator's entry
//     stays, and is not shown.
//   - A visitor changes entries of the account and the address of the token alone, of its list or of the
//     account as a whole.
//   - Only an attempt to send an email writes a token. So the token proves that, years later and without the
//     email log. An email that was only shown has a preview token, which is answered Forbidden.
//   - A token that was forged, or cut off by a mail client, is answered NotFound.
//
// It does not decide which mail an unsubscribed address still gets: that is the lane rule of package
// suppression. It never confirms by mail, never asks for reasons, and owns no Redis keys.
//
// # When it fails
//
// Redis away: [Service.Unsubscribe] and [Service.Resubscribe] fail with fault.Unavailable, and mail clients
// try again. If the keys that signed an email are gone (removed from secretPrevious), its links do not work
// any more: docs/unsubscribe.md says how long to keep them.
package unsubscribe
