// Package gateways knows how to reach a relay: it checks settings, fills in presets, names secrets with the
// places they go to, and makes a [Relay] that smtpsend can use. It does so for accounts, whose own relay is
// one of their fields, and in [Store] it keeps the gateways: the relays that accounts share (by package
// records, which seals and masks secrets). Package routing resolves a gateway for every message and reports
// the outcome.
//
// It promises:
//   - Every secret (password, access token, OAuth client secret and refresh token, password of a proxy) is
//     sealed before it reaches Redis, bound to its record and field. Answers show ****** instead. Sending
//     that back keeps the stored value, but only while the places it goes to stay the same: who may change a
//     relay's settings can't have its secrets sent to a host of their own.
//   - Every wrong field of a request is reported at once.
//   - A preset stands in for absent fields only (the table in preset.go has the numbers and their sources).
//   - A change is seen by every process within about a second, and by the process that made it at once.
//     [Store.Resolve] asks Redis once a second to learn of changes, not for each message.
//   - Two changes at the same time do not mix. Deliveries are counted without loss if the process stops in
//     order.
//
// It never connects to anything, and never deletes a gateway from the accounts that list it: accounts skip
// what is gone.
//
// # Redis
//
// All keys are in partition 0: gateway:<id> (hash: record, revision), gateway:<id>:state (hash: state, until,
// deliveries, lastUse, lastError, lastCode, lastErrorAt), gateways (sorted set of ids, all of score 0: in
// alphabetical order), gateways:version (raised by each change). None of them expires.
//
// If Redis is unreachable, every call answers Unavailable, [Store.Resolve] too once its memory is older than
// a second; outcomes are written when Redis is back. If a secret can't be opened (the instance's secret was
// changed), Resolve fails for that gateway only, until the secret is entered again.
package gateways
