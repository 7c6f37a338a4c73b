// Package seal keeps secrets for every package that stores some: it encrypts values before they reach Redis,
// derives signing keys, and makes and checks tokens.
//
// A sealed value is text, "v1.<key id>.<base64>": XChaCha20-Poly1305 with a random nonce, under a key derived
// by HKDF-SHA-256 (RFC 5869) from the setting secret. The caller names the record the value belongs to; a
// sealed value moved to another record does not open.
//
// It promises that a changed, moved or foreign value never opens, that no two sealings of one value look
// alike, and that values sealed under an older secret still open as long as that secret is listed, so that
// secrets can be replaced without stopping.
//
// It never stores anything, never logs, and puts neither plain text nor keys into errors. Keys for different
// purposes are independent: one leaking says nothing about the others. It owns no Redis keys.
//
// When a value doesn't open, the error says whether its key is unknown ([ErrUnknownKey]: a secret was removed
// too early) or the value itself is damaged ([ErrDamaged]).
package seal
