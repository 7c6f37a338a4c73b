// Package routing takes one message to one of the relays its account has, and says what came of it. The outbox calls it once for each
// attempt; smtpsend talks to the relay.
//
// # Which relay
//
// A message that names a gateway goes through that gateway or not at all. Otherwise the account's own relay comes first, then its gateways
// in their order. Gateways with a weight share the load: they stand together where the first of them stands, and each message draws its
// own order among them, by weight. A relay without a weight is a fallback for those before it.
//
// A relay is left for the next one
//   - when it fails before it has judged anything ([smtpsend.Error.Elsewhere]): it can't be reached, TLS or the login fails, no access token
//     can be had for it, or it wants no mail from us now. That happens within the attempt, recipient by recipient: who was delivered,
//     refused or may have been delivered is never taken to another relay. A relay that refuses an access token is first shown another
//     one, and a relay that only wants a new connection gets one.
//   - when it rests. After 5 such failures in a row a relay rests for 30 s, then for twice as long each time, up to 10 min; after each rest
//     one message tries it. Resting only decides between relays: when all of them rest, the message tries the one that is due first,
//     so no message waits for a relay without spending an attempt, and no relay that is an account's only one is ever spared.
//   - when it has asked us to slow down. Until it takes mail again at full pace, what is beyond that pace goes to the next relay.
//   - when its configured limit is reached, or all of its connections are taken, but then only for another of the same weighted group: to
//     have no room is no failure, and fallbacks are for failures. Without one that has room, the message waits. The place it was given at
//     a relay that it did not wait for is kept for the next message that comes there, so that no place is lost.
//
// # Limits
//
// An attempt takes its place in the limits of the account and of the relay before it begins, one for each recipient left. A message that
// has to wait gets a place and is told when to come back ([Sent.Wait], [Sent.Reservation]); no attempt is spent, and nothing was said to any
// relay. The account's limit counts an attempt once, however many relays it tries.
//
// A relay's request to slow down (Verdict Throttle, said by the relay and not by us) slows its scope for all processes: "gateway:<id>"; for
// an account's own relay "relay:<account>", so that the account's gateways can go on. Deliveries under way are not touched.
//
// # What it never does
//
// It never repeats an attempt: the outbox decides that. It tells gateways what their relays met, but not accounts; the outbox does. It
// writes no secret to logs or errors. It owns no Redis key; limits, oauth and relays have theirs.
//
// # When it fails
//
// When limits can't be asked (Redis is away), nothing is sent: the message comes back in some seconds. Mail must not go out uncounted. Nor
// does it when a gateway that the message names can't be looked up. A gateway that does not exist fails the message for good
// ([ErrNoGateway]); secrets that can't be opened, and an account without any relay, are the account's trouble. Which relays rest or have no
// room is known to this process only, and forgotten with it: every process finds out for itself, at the cost of 5 attempts that fail over.
package routing
