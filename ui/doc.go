// Package ui serves the operator's pages to people with a browser: the outbox, the email log, each message with
// its story, the webhook endpoints, the accounts, the state of the instance, and, behind the same login, the dashboard of the queues.
//
// It promises:
//
//   - Every page works without script. The script keeps pages fresh and shows times in the viewer's own zone, no more.
//   - Nothing is loaded from another host, and what strangers wrote (subjects, addresses, replies of relays, metadata, mail itself) is shown
//     as text: it is escaped, HTML is shown as source, and the content security policy runs no script but our own.
//   - A page is closed unless routes.go says it is public. Tokens bound to an account are refused, as at every route that concerns the whole
//     instance.
//   - What changes something is a POST and comes from our own pages (http.CrossOriginProtection), or from a program with a bearer token.
//   - Cancelling many messages is confirmed on a page that states their number, and touches none beyond it.
//   - The text of an internal error is logged, and never on a page.
//
// It never decides about messages (package outbox does), never speaks to Redis, and owns no keys. Sessions are kept by package access; the
// browser holds the session's cookie and, between a change and the page after it, a cookie with the sentence that says what was done.
//
// When Redis is away, pages answer 503, say so, and try again by themselves; /status goes on answering a caller with the configured token.
package ui
