// Package server is the HTTP API of Postroom: it parses requests, calls the packages below, and answers. It
// speaks EmailEngine's API, and serves its documentation. All routes stand in one table, routes.go; the
// handlers of a resource are methods of one small type.
//
// It promises:
//
//   - A request is refused whole or not at all, with all of its faults in one answer: unknown keys of body
//     and query, wrong types, broken limits, and faults that only the outbox or the suppression list can
//     find.
//   - The limits enforced, the OpenAPI document and the Go types are one thing: all three come from the tags
//     in package api.
//   - The text of an internal error is logged under the request's id and never reaches a client. No token is
//     logged.
//   - A route needs a token unless the table says that it is public. A token bound to an account sees nothing
//     beyond it: what belongs to others looks exactly like what does not exist.
//   - A body beyond the limit is refused without being read. A large body is decoded while it arrives, and
//     waits for its share of memory.
//
// A Server of [NewMonitor] has health and metrics only, for processes without an API.
//
// It never decides about messages, keeps no state, and owns no Redis keys. Package huma writes the OpenAPI
// document. Requests are read here, because huma reads a body three times over and reports the faults of
// query and body one after the other.
//
// When Redis or another part is unreachable, the answer is 503 with Retry-After. While it stops, the server
// answers 503 to new submits and finishes those it has.
package server
