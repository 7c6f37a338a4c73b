// Package alerts shows operators whether the service is well. A [Watch] alerts them when mail stops or the
// service has a problem, without a monitoring system: with an event that webhooks deliver, a log line at
// error level, and a metric. An [Overview] gathers what they need to know now: whether mail flows, what is
// wrong, and where to fix it. The page at /, GET /v1/overview and `postroom overview` show it, and `postroom
// doctor` lists its problems.
//
// Each problem has one check: checks.go measures and describes it, raise.go decides whether its alert is
// raised or resolved, and alerts.go has its playbook and the first step to take. Problems of a single
// account, gateway, endpoint or queue are in overview_troubles.go. Package server/why is something else: it
// explains the results of mail to one address.
//
// # Alerts
//
// Every process checks every Options.Every. An alert is raised when its condition holds. It is resolved when
// the condition has not held for four checks in a row, so a problem that comes and goes is one alert.
//
//	queueAge        work that is due has waited for too long, and its queue is not paused
//	queuePaused     a queue has been paused for too long
//	mailFails       many messages, or a large share of them, failed for good within the hour
//	recordsRefused  records in Redis that are not as Postroom wrote them
//	accountTrouble  accounts whose login, token, certificate or sender is refused: their mail waits, or fails
//	outboxFull      the outbox holds nearly as many messages as it may; at the limit new mail is refused
//	redisMemory     Redis is nearly as full as it may be; beyond that new mail is refused
//	redisEvicts     Redis has thrown keys away
//	redisForgets    Redis does not keep what it acknowledges, may throw it away, or fails to write it to disk
//	relayAway       a relay with mail has not answered a process for too long
//	bounceRate      many recipients that a gateway mailed within a day have dead addresses
//	complaintRate   many of them complained
//	auditBroken     entries of the audit log were changed, or are missing
//	campaignHeld    campaigns stopped by themselves, because of their results, their account or their relay
//	digestsLate     a digest that is due was not made for too long, and the queue digests is not paused
//	webhookFailing  a webhook endpoint took no event for too long
//	webhookOff      Postroom switched a webhook endpoint off, and it is still off
//	redisAway       Redis does not answer, or refuses to write
//
// A Watch promises:
//   - One problem raises one alert and resolves it once, whatever the number of processes. An alert's state
//     and its event change in one step, and only from the state that was read.
//   - A value that could not be measured neither raises nor resolves an alert.
//   - It changes only its own keys, and costs Redis a few commands for each check; mail is counted once a
//     minute.
//
// It never repairs anything, and never alerts about single messages or deliveries: messageFailed,
// accountError and webhookDisabled do.
//
// Keys, in partition 0: alerts (hash: an alert's name, with its queue, to its state as JSON), alerts:looked
// (string: time of the last check, written to test whether Redis accepts writes; lives for an hour). It
// appends to the stream events, which outbox owns.
//
// If Redis is unreachable, or refuses to write, there is no event and no shared state. Each process then logs
// and exports what it notices, redisAway first, and writes standing alerts once Redis is back. If a process
// dies, the others continue. An alert that is switched off in the settings, or that no process can measure
// any more, is resolved after five minutes.
//
// # The overview
//
// An Overview promises:
//   - Its cost doesn't grow with the email log. It reads counters by hour and day, the heads of indexes, the
//     newest 200 messages that were sent, and the newest 200 that failed.
//   - Where it judges such a part of the log, it says how many messages it looked at.
//   - The overview of an account says nothing about other accounts and the instance.
//   - Reasons of failures contain no addresses.
//
// It changes nothing, decides nothing about messages, and owns no keys in Redis. If a source fails, so does
// the overview, because all sources are in the same Redis. Only [Overview.Alerting] answers then, with what
// the process knows.
package alerts
