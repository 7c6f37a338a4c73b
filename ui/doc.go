// Package ui serves the operator's web pages: the overview, the outbox, the email log, each message with its
// timeline, the webhook endpoints, the accounts, the state of the instance, and, behind the same login, the
// dashboard of the queues.
//
// It promises:
//
//   - Every page works without script. The script only refreshes pages and shows times in the browser's time
//     zone.
//   - Nothing is loaded from another host. Untrusted text (subjects, addresses, replies of relays, metadata,
//     mail itself) is escaped, and the content security policy allows only our own script. The html of
//     mail is in a sandboxed frame without script.
//   - A page needs a login unless routes.go marks it public. Tokens bound to an account are refused, as at
//     every route for the whole instance.
//   - A change is a POST from our own pages (http.CrossOriginProtection), or from a program with a bearer
//     token.
//   - Cancelling many messages is confirmed on a page that states their number, and cancels no more than
//     that.
//   - The text of an internal error is logged, and never on a page.
//
// It makes no decisions about messages (package outbox does), never connects to Redis, and owns no keys.
// Package access keeps sessions. The browser holds the session's cookie and, after a change, a cookie with
// the sentence that reports its result on the next page.
//
// While Redis is unreachable, pages answer 503 with the reason and reload; /status still answers a caller
// with the configured token.
package ui
