// Package api is Postroom's public contract in Go: the JSON of every request and answer, and a client for them.
//
// Programs that talk to Postroom import this package and nothing else; package server answers with these very types, and its tests
// speak through this client, so the two can't drift apart. Names and shapes are EmailEngine's where EmailEngine has them.
//
// The types hold no behaviour beyond reading and writing themselves. The tags doc, minLength, maxLength, minimum, maximum, minItems,
// maxItems, enum and format are the limits the server enforces and the OpenAPI document states. Times are RFC 3339 in UTC.
package api
