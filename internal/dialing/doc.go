// Package dialing decides which addresses Postroom may connect to, and keeps the TLS certificates that its
// listeners and connections show.
//
// # Addresses
//
// Everything is dialed through a [Guard]: relays and their proxies, webhooks, accounts' token servers, the
// search index, the archive of events and providers' APIs. arch_test.go fails if another package makes its
// own dialer or HTTP client.
//
// It promises:
//   - Link-local addresses, and those where clouds serve credentials, are never dialed. Private and loopback
//     addresses are dialed only if Options.AllowPrivate is set.
//   - The address is judged when it is dialed, after DNS. A name that resolves differently between a check
//     and a connection (DNS rebinding) gains nothing. IPv4 addresses inside of IPv6 ones (IPv4-mapped, NAT64)
//     are judged as what they lead to; 6to4, Teredo and the local NAT64 prefix are refused.
//   - HTTP clients follow no redirect, and use the proxy of the environment only where asked to.
//   - An error says neither to which address a name leads, nor what a server said that does not speak the
//     protocol. Both are in the log, at debug.
//
// It does not judge names: [Guard.CheckHost] refuses only hosts that are addresses, so that a wrong setting
// is found when it is made. It does not know the prefixes of an operator's own NAT64. A proxy resolves names
// itself; see [Guard.Target].
//
// It owns no Redis keys. A refusal is an error that is [ErrRefused]; another attempt does not help.
//
// # Certificates
//
// A [Certificate] is in two files. The listeners of HTTP and SMTP show it, and so do connections to Redis
// that authenticate with one.
//
// A renewal replaces the files while Postroom runs. The next handshake uses the new certificate; existing
// connections keep the old one. If files can't be read, or don't belong together because only one has been
// replaced yet, nothing changes: the last good certificate stays in use, and one warning says so.
//
// The package never writes a file.
package dialing
