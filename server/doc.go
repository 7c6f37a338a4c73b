// Package server is the HTTP door of Postroom: it parses requests, asks the packages below, and answers, for programs that speak
// EmailEngine's API and for people reading the API's documentation. All routes stand in one table in routes.go.
//
// It promises:
//
//   - A request is refused whole or not at all, and all its faults are told at once: unknown keys of body and query, wrong types, broken
//     limits, and what only the outbox can know of a submit, and the suppressions of what is added to them.
//   - The limits enforced, the OpenAPI document and the Go types are one thing: all three come from the tags in package api.
//   - The text of an internal error is logged under the request's id and never reaches a client; no token is logged.
//   - A route is closed unless the table says it is public, and a token bound to an account sees nothing beyond it: what belongs to
//     others looks exactly like what does not exist.
//   - A body beyond the limit is refused without being read, and a body within it is held once as text and once decoded.
//
// A Server of [NewMonitor] has health and metrics only, for processes without an API.
//
// It never decides about messages, keeps no state, and owns no Redis keys. Package huma writes the OpenAPI document; requests are read
// by this package itself, because huma reads a body three times over and tells faults in the query and in the body one after the other.
//
// When what it asks is away, the answer is 503 with Retry-After. When it is told to stop, it answers 503 to new submits and finishes
// those it has.
package server
