// Package gateways knows what it takes to reach a relay: settings are checked, presets filled in, secrets named with the places they go to,
// and all of it made ready for smtpsend. It does so for accounts, whose own relay is one of their fields, and it keeps the gateways, the
// relays that accounts share (in package records, which seals and masks their secrets). routes asks it for a gateway ready to use with
// every message and tells it what came of that; the doors change gateways through it.
//
// It promises:
//   - Every secret (password, access token, OAuth client secret and refresh token, password of a proxy) is sealed before it reaches
//     Redis, bound to its record and field. Answers show ****** instead. Sending that back keeps the stored value, but only while the
//     places it goes to stay the same: who may change a relay's settings can't have its secrets sent to a host of their own.
//   - Every wrong field of a request is reported at once.
//   - What a preset says stands in for absent fields only (the table in preset.go has the numbers and where they are from).
//   - A change is seen by every process within about a second, and by the process that made it at once. [Store.Resolve] asks Redis once
//     a second to learn of changes, not for each message.
//   - Two changes at the same time do not mix. What a gateway met is counted without loss as long as the process ends in order.
//
// It never connects to anything, and never deletes a gateway from the lists of the accounts that name it: accounts skip what is gone.
//
// # Redis
//
// All keys are in partition 0: gateway:<id> (hash: record, revision), gateway:<id>:state (hash: state, until, deliveries, lastUse,
// lastError, lastCode, lastErrorAt), gateways (sorted set of ids, all of score 0: in the order of the alphabet), gateways:version (raised
// by each change). None of them expires.
//
// When Redis is away, every call answers Unavailable, [Store.Resolve] too once what it remembers is older than a second; what gateways
// met is written when Redis is back. A secret that can't be opened (the instance's secret was changed) fails Resolve for that gateway
// only, until the secret is entered again.
package gateways
