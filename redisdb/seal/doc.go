// Package seal encrypts values before they reach Redis, and derives signing keys.
//
// A sealed value is text, "v1.<key id>.<base64>": XChaCha20-Poly1305 with a random nonce, under a key derived
// by HKDF-SHA-256 (RFC 5869) from the setting secret. The caller gives the name of the record that the value
// belongs to. A sealed value moved to another record does not open.
//
// It promises that a changed, moved or foreign value never opens, and that no two sealings of one value are
// equal. Values sealed under an older secret open as long as that secret is configured, so secrets can be
// replaced without a stop.
//
// It never stores anything, never logs, and puts neither plain text nor keys into errors. Keys for different
// purposes are independent: one that leaks reveals nothing about the others. It owns no Redis keys.
//
// If a value does not open, either its key is unknown ([ErrUnknownKey]: a secret was removed too early) or
// the value itself is damaged ([ErrDamaged]).
package seal
