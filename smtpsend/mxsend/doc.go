// Package mxsend delivers one message straight to the mail servers of its recipients' domains, and returns
// the result of each recipient. Its caller is routing, which knows gateways; mxsend knows none.
//
// It promises:
//   - The promises of [smtpsend.Sender.Send] about BeforeDot, AtDot and Answered hold here too. Nothing can
//     be delivered before BeforeDot has returned nil, and a recipient whose delivery is in doubt is never
//     offered to another server.
//   - Servers are tried in the order of their MX preference (RFC 5321 section 5.1): at most five hosts with
//     two addresses each, IPv6 and IPv4 in turn. A refusal of the message or of a recipient with 5xx is
//     final. A 4xx, a server that can't be reached or a refused connection leads to the next host. A host
//     that asks to slow down ends the attempt: the domain's other hosts share the limit.
//   - A domain with a null MX gets no connection (RFC 7505). MX hosts that are this machine, and hosts of
//     equal or worse preference, are skipped, so that mail doesn't loop.
//   - DANE (RFC 7672) and MTA-STS (RFC 8461) are obeyed, in this order. Without them, a connection is
//     encrypted if the server can do that, and its certificate isn't verified.
//   - A failure of one domain's servers is about that domain: its scope is [smtpsend.ScopeDestination],
//     never the account or the connection. So it can't hold an account or pause a gateway. Exceptions are a
//     source address that this machine doesn't have, and the end of the context.
//   - If none of a domain's servers can be reached five times in a row, these servers are paused for 30 s,
//     then longer, up to 10 min, and no other domain with them. Until then their recipients fail without a
//     connection; after each pause one message tries them.
//   - Recipients whose domains have the same servers and the same policy share transactions, except at
//     Google, which wants one domain for each.
//
// It never retries a message. If a domain doesn't exist, the failure is soft with RetryAfter at first. It
// becomes hard when this process finds the domain missing again an hour later. The package remembers that
// for a day. A restart, or another process that gets the next attempt, begins again with the soft failure.
// No domain is given up after a single look. A DNS that doesn't know com proves nothing.
//
// DANE needs a name server that proves its answers, see [maildns.Client]. Otherwise it is off, and MTA-STS
// still applies. If the store of policies fails, policies are fetched again.
//
// It owns no Redis keys, and it dials nothing itself: [smtpsend.Sender] connects to mail servers, an HTTP
// client of package dialing fetches policies, and maildns asks name servers. In memory it keeps policies,
// domains that don't exist, paused servers, and hosts whose TLS is broken, all of them bounded.
package mxsend
