// Package strangers bounds what clients can take of a process before they have proven who they are, and what
// those who have can take from each other. Packages server, server/smtpd and ui use it.
//
//   - A [Gate] bounds connections, in all and by network: an IPv4 address, or the /64 of an IPv6 address.
//     A connection is a stranger's until [Pass.Prove]. If there are too many, it closes the oldest one of a
//     stranger. So a client that is about to prove itself always gets in, however many others stay silent.
//   - A [Pool] bounds the memory of bodies. Memory is taken as bytes arrive, never by a declared length. One
//     owner gets at most as much as is left to all others.
//   - A [Pace] cuts off slow senders.
//   - [Proofs] counts wrong proofs by network.
//
// # Promises
//
//   - What it keeps of addresses is bounded by the number of connections, or by a constant.
//   - It never refuses a valid proof because of wrong ones.
//   - It logs one line a minute at most for each gate, with the number of connections since the last one.
//
// It keeps no state beyond the process, and owns no Redis keys. Each process has limits of its own.
package strangers
