// Package gateways turns settings into a [Relay] that smtpsend can use: it checks them, adds presets' values,
// and lists secrets with the hosts they are sent to. It does so for an account's own relay, and for gateways,
// the relays that accounts share. [Store] stores gateways, by package records, which seals and masks secrets.
// Package routing resolves a gateway for every message and reports the outcome.
//
// It promises:
//   - Every secret (password, access token, OAuth client secret and refresh token, proxy's password) is
//     sealed before it reaches Redis, bound to its record and field. Answers show ****** instead. Sending
//     that back keeps the stored value, but only while the places it goes to stay the same. People who may
//     change a relay's settings can't have its secrets sent to their own host.
//   - An error about a request names every wrong field.
//   - A preset replaces absent fields only (the table in preset.go has the numbers and their sources).
//   - Every process sees a change within about a second, the process that made it immediately.
//     [Store.Resolve] asks Redis once a second for changes, not for each message.
//   - Two changes at the same time do not mix. Deliveries are counted without loss if the process stops in
//     order.
//
// It never connects to anything, and never removes a gateway from the accounts that list it: accounts skip
// deleted gateways.
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
