// Package server is the HTTP API of Postroom: it parses requests, calls the packages below, and answers. It
// is compatible with EmailEngine's API, and serves its documentation. All routes are in one table, routes.go.
// The handlers of a resource are methods of one small type.
//
// It promises:
//
//   - A request is refused as a whole, with all of its errors in one answer: unknown keys, wrong types,
//     broken bounds, and errors that only the outbox or the suppression list can find.
//   - The bounds enforced and the OpenAPI document come from the same tags of the Go types in package api.
//   - The text of an internal error is logged under the request's id and never reaches a client. No token is
//     logged.
//   - A route needs a token unless the table makes it public. A token bound to an account sees nothing else:
//     the data of other accounts looks exactly like data that does not exist.
//   - Package peers determines the client's address: no one can forge it by a header.
//   - A body beyond its limit is refused unread. A large body is decoded while it arrives, and waits until
//     there is memory for it.
//
// A Server of [NewMonitor] has health and metrics only, for processes without an API.
//
// It never decides about messages, keeps no state, and owns no Redis keys. Package huma writes the OpenAPI
// document. It does not read requests: it reads a body three times, and reports the errors of query and body
// one after the other.
//
// If Redis or another part is unreachable, the answer is 503 with Retry-After. While it stops, the server
// answers 503 to new submits and finishes the others.
package server
