// Package seal encrypts values before they reach Redis, and derives signing keys.
//
// A sealed value is text, "v1.<key id>.<base64>": XChaCha20-Poly1305 with a random nonce, under a key derived
// by HKDF-SHA-256 (RFC 5869) from the setting secret. The caller gives the name of the record that the value
// belongs to, followed by a space and the place it goes to, if it goes anywhere. A sealed value moved to
// another record or place does not open. Records without secrets, for example tokens', have a code
// ([Ring.MAC]) in the same form, so that no one who writes to Redis can make one.
//
// Larger data, such as the content of mail, is sealed as a box ([Ring.SealBox]): bytes instead of text, in
// chunks that are opened one by one.
//
// It promises that a changed, moved or foreign value never opens, and that no two sealings of one value are
// equal. Values sealed under an older secret open as long as that secret is configured, so secrets can be
// replaced without a stop.
//
// It stores nothing outside of memory, never logs, and puts neither plain text nor keys into errors. Keys for
// different purposes are independent: one that leaks reveals nothing about the others. It owns no Redis keys.
//
// If a value does not open, either its key is unknown ([ErrUnknownKey]: a secret was removed too early) or
// the value itself is damaged ([ErrDamaged]). [Ring.Refused] names such records for an alert.
package seal
