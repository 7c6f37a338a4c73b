// Package routing hands one message to one of its account's relays and returns the result. The outbox calls
// it once for each attempt; smtpsend talks to the relay.
//
// # Which relay
//
// A message that names a gateway goes through that gateway or not at all. Otherwise the account's own relay
// comes first, then its gateways in their order. Gateways with a weight share the load: they stand together
// where the first of them stands, and each message draws its own order among them, by weight. A relay without
// a weight is a fallback for those before it.
//
// The next relay is tried
//   - if a relay fails before it has judged anything ([smtpsend.Error.Elsewhere]). It can't be reached, TLS
//     or the login fails, it gets no access token, or it accepts no mail from us now. This happens within the
//     attempt, recipient by recipient: a recipient that was delivered, refused or is in doubt never goes to
//     another relay. A relay that refuses an access token gets another one first, and a relay that only wants
//     a new connection gets one.
//   - if a relay is paused. After 5 such failures in a row a relay is paused for 30 s, then twice as long
//     each time, up to 10 min; after each pause one message tries it. If all are paused, the message tries
//     the one that is due first, unless another message is trying it: then it comes back without an attempt.
//   - if a relay has asked us to slow down. Until it takes mail at full pace again, what exceeds the pace
//     goes to the next relay.
//   - if a relay is at its configured limit, or all of its connections are taken. Then only another relay of
//     the same weighted group is tried: a reached limit isn't a failure, and fallbacks are for failures. If
//     that relay is at a limit too, the message waits. A reservation at a relay that the message did not wait
//     for is kept for the next message there.
//
// # Slots
//
// A relay has a number of messages under way that depends on its answers (slots.go): two at first, more with
// each answer, one after a silence, none while some are overdue. So silent relays hold few workers. A message
// without a slot, or without a free connection within 100 ms, comes back when Slots says so ([Sent.Relay]).
//
// # Limits
//
// An attempt pays the limits of the account and of the relay before it begins, one for each recipient left. A
// message that has to wait gets a reservation and a time to come back ([Sent.Wait], [Sent.Reservation]); no
// attempt is spent, and nothing was sent to any relay. The account's limit counts an attempt once, however
// many relays it tries.
//
// A gateway also has limits for destinations: groups of recipients' domains (destination.go). They are asked
// in the same call, for each one's recipients. A message that waits for a destination has not paid account
// and gateway, and is marked by [Sent.Destination]. A failure that is only about a destination
// ([Try.OfDestination]) slows that one down, and neither slows nor pauses the gateway. Without limits, and
// while no destination of the gateway is slowed down, none is asked about.
//
// If a relay asks to slow down (Verdict Throttle, from the relay and not from us), its scope is slowed for
// all processes: "gateway:<id>", or "relay:<account>" for an account's own relay. The account's gateways
// continue. Deliveries under way are not affected.
//
// # What it never does
//
// It never repeats an attempt: the outbox decides that. It reports outcomes to gateways, but not to accounts;
// the outbox does that. It writes no secret to logs or errors. It owns no Redis key; limits, oauth and
// gateways have theirs.
//
// # When it fails
//
// If limits can't be asked (Redis is unreachable), nothing is sent and the message comes back after some
// seconds: mail must not go out uncounted. The same holds if a gateway that the message names can't be looked
// up. A gateway that does not exist fails the message permanently ([ErrNoGateway]). Secrets that can't be
// opened, and an account without any relay, are the account's errors. Each process knows only by itself which
// relays are paused or at a limit, and loses that when it ends: it finds out again, at the cost of 5 attempts
// that fail over.
package routing
