// Package peers knows who is at the other end of each connection, and limits how much of the process they can
// take. Packages server, server/smtpd and ui ask only this package, so limits, logs, tracking and the
// restrictions of tokens see the same address.
//
// # Who a client is
//
// A client is the other end of the connection, or, behind the proxies of http.trustedProxies, whoever they
// say.
//
// A proxy tells the client's address in one of two ways:
//
//   - By a header of the request: X-Forwarded-For, or Forwarded (RFC 7239) if there is no X-Forwarded-For.
//     [Proxies.Handler] reads it. X-Forwarded-Proto, or proto= in Forwarded, shows whether the client uses
//     TLS.
//   - By the PROXY protocol, version 1 or 2, at the beginning of the connection, before TLS. [Proxies.Listen]
//     reads it. Version 2 also shows whether the client uses TLS.
//
// Promises:
//
//   - A header is believed from a trusted proxy only. No address is trusted unless it is listed, loopback
//     and private ones included.
//   - The chain of a header is read from its end, which the nearest proxy wrote, to the first address that is
//     not a trusted proxy. Addresses before that came from the client, and are ignored.
//   - If a trusted proxy hides its client ("unknown", "_hidden") or writes garbage, the address is unknown:
//     it satisfies no restriction of a token. It is never the address of the proxy.
//   - With the PROXY protocol, a trusted proxy must send the header within 5 s, else its connection ends,
//     with a line in the log. Other clients are served as without a proxy. Their PROXY headers are not
//     believed: HTTP ends the connection, and SMTP refuses them as a command, both with a line in the log.
//   - A request with a header from a proxy that is not trusted is served as the proxy's. The first such
//     request is logged, with the setting to change.
//
// # How much a client can take
//
// Before clients have proven who they are, bounds protect the process from them. After that, bounds protect
// them from each other.
//
//   - A [ConnLimiter] bounds connections, in all and by network: an IPv4 address, or the /64 of an IPv6
//     address. A client is unauthenticated until [Pass.Prove]. If there are too many connections, the
//     limiter closes the oldest one of an unauthenticated client. So a client that is about to prove itself
//     always gets in, however many others stay silent.
//   - A [Pool] bounds the memory of bodies. Memory is taken as bytes arrive, never by a declared length. One
//     owner gets at most as much as is left to all others.
//   - A [Pace] cuts off slow senders.
//   - [Proofs] counts wrong proofs by network.
//
// Promises:
//
//   - Its data about addresses is bounded by the number of connections, or by a constant.
//   - It never refuses a valid proof because of invalid ones.
//   - It logs one line a minute at most for each limiter, with the number of connections since the last one.
//
// The package keeps no state beyond the process, and owns no Redis keys. Each process has its own limits.
package peers
