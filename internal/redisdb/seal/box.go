package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// A box is a sealed value of bytes, for data that is too large for the text of [Ring.Seal]: a head, then the
// value in chunks, each sealed separately. So it takes hardly more room than the value, is sealed and opened
// in place, and can be opened while it is read.
//
// The head is boxVersion, the key's id and a random prefix. The nonce of a chunk is that prefix, its number,
// and whether it is the last (the STREAM construction of Hoang, Reyhanitabar, Rogaway and Vizár, 2015). So
// chunks can't be left out, swapped, or taken from another box.
const (
	BoxHead  = 1 + idSize + prefixSize   // bytes of the head
	BoxChunk = 132 << 10                 // bytes of the value in each chunk; at most as many in the last
	BoxTag   = chacha20poly1305.Overhead // bytes that are added to each chunk

	boxVersion = 0xB1 // first byte of a box; nothing else that is stored begins so
	idSize     = 4
	prefixSize = chacha20poly1305.NonceSizeX - 5
)

// IsBox reports whether a value is a box, or the beginning of one.
func IsBox(value []byte) bool { return len(value) > 0 && value[0] == boxVersion }

// BoxSize returns the size of the box of a value of n bytes.
func BoxSize(n int) int { return BoxHead + n + (max(0, n-1)/BoxChunk+1)*BoxTag }

// SealBox seals what follows the first BoxHead bytes of box for the record named aad, and returns the box. It
// is made in place if the capacity of box is at least BoxSize.
func (r *Ring) SealBox(box []byte, aad string) []byte {
	n, k := len(box)-BoxHead, r.keys[0]
	box = slices.Grow(box, BoxSize(n)-len(box))
	box[0] = boxVersion
	_, _ = hex.Decode(box[1:], []byte(k.id)) // it is hex
	rand.Read(box[1+idSize : BoxHead])       // never fails: crypto/rand ends the program first
	last := max(0, n-1) / BoxChunk
	for i := last; i >= 0; i-- { // the last one first: each chunk moves by the tags before it
		from, to := BoxHead+i*BoxChunk, BoxHead+i*(BoxChunk+BoxTag)
		size := min(BoxChunk, n-i*BoxChunk)
		chunk := box[to : to+size]
		copy(chunk, box[from:from+size])
		k.box.Seal(chunk[:0], nonceOf(box, i, i == last), chunk, []byte(aad))
	}
	return box[:BoxSize(n)]
}

// OpenBox opens a box of the record named aad in place, and returns its value. It fails with ErrUnknownKey or
// ErrDamaged; then the box is spoiled.
func (r *Ring) OpenBox(box []byte, aad string) ([]byte, error) {
	value, err := r.openBox(box, aad)
	if err != nil {
		r.refused.note(aad)
	}
	return value, err
}

func (r *Ring) openBox(box []byte, aad string) ([]byte, error) {
	k, err := r.keyOf(box)
	if err != nil {
		return nil, err
	}
	value := box[BoxHead:BoxHead]
	for i, rest := 0, box[BoxHead:]; ; i++ {
		chunk := rest[:min(len(rest), BoxChunk+BoxTag)]
		rest = rest[len(chunk):]
		opened, err := k.box.Open(chunk[:0], nonceOf(box, i, len(rest) == 0), chunk, []byte(aad))
		if err != nil {
			return nil, ErrDamaged
		}
		value = append(value, opened...)
		if len(rest) == 0 {
			return value, nil
		}
	}
}

// RenewBox seals a box again in place, under the current secret.
func (r *Ring) RenewBox(box []byte, aad string) ([]byte, error) {
	value, err := r.OpenBox(box, aad)
	if err != nil {
		return nil, err
	}
	return r.SealBox(box[:BoxHead+len(value)], aad), nil
}

// BoxNeedsRotation reports whether a box is sealed under another secret than the current one. The head of the
// box is enough. It is false for a value that isn't a box.
func (r *Ring) BoxNeedsRotation(head []byte) bool {
	return IsBox(head) && len(head) >= BoxHead && hex.EncodeToString(head[1:1+idSize]) != r.keys[0].id
}

// keyOf returns the key of a box.
func (r *Ring) keyOf(box []byte) (key, error) {
	if !IsBox(box) || len(box) < BoxHead {
		return key{}, ErrDamaged
	}
	k, known := r.find(hex.EncodeToString(box[1 : 1+idSize]))
	if !known {
		return key{}, ErrUnknownKey
	}
	return k, nil
}

// nonceOf returns the nonce of a chunk. Its number counts 132 KB, so 32 bits are enough.
func nonceOf(head []byte, i int, last bool) []byte {
	nonce := append(make([]byte, 0, chacha20poly1305.NonceSizeX), head[1+idSize:BoxHead]...)
	nonce = binary.BigEndian.AppendUint32(nonce, uint32(i)) //nolint:gosec // a value of 2^32 chunks has 500 TB
	if last {
		return append(nonce, 1)
	}
	return append(nonce, 0)
}

// BoxReader returns a reader of the value in a box of the record named aad. It holds one chunk. A box whose
// key is not known, or that has no head, is refused now; damage is found as it is read. If the box is sealed
// again in between, reading continues in the new one: the chunks of both begin at the same places.
func (r *Ring) BoxReader(box io.ReaderAt, aad string) (io.Reader, error) {
	b := &boxReader{ring: r, box: box, aad: aad, head: make([]byte, BoxHead)}
	if _, err := b.readHead(); err != nil {
		return nil, err
	}
	return b, nil
}

// boxReader implements io.Reader.
type boxReader struct {
	ring  *Ring
	box   io.ReaderAt
	aad   string
	head  []byte
	key   key
	buf   []byte // one chunk's
	next  int    // number of the chunk that is read next
	last  bool   // it was the last
	value []byte // not read yet
}

func (b *boxReader) Read(into []byte) (int, error) {
	for len(b.value) == 0 {
		if b.last {
			return 0, io.EOF
		}
		if err := b.open(); err != nil {
			return 0, err
		}
	}
	n := copy(into, b.value)
	b.value = b.value[n:]
	return n, nil
}

// readHead reads the head, and reports whether it is another one than before.
func (b *boxReader) readHead() (changed bool, err error) {
	head := make([]byte, BoxHead)
	if _, err := b.box.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	changed = !bytes.Equal(head, b.head)
	if b.key, err = b.ring.keyOf(head); err != nil {
		b.ring.refused.note(b.aad)
	}
	b.head = head
	return changed, err
}

// open reads the next chunk and opens it.
func (b *boxReader) open() error {
	for {
		err := b.openChunk()
		if !errors.Is(err, ErrDamaged) {
			return err
		}
		changed, wrong := b.readHead()
		if wrong != nil {
			return wrong
		}
		if !changed {
			b.ring.refused.note(b.aad)
			return err
		}
	}
}

func (b *boxReader) openChunk() error {
	const most = BoxChunk + BoxTag
	if b.buf == nil {
		b.buf = make([]byte, most+1) // one byte more shows whether another chunk follows
	}
	n, err := b.box.ReadAt(b.buf, int64(BoxHead+b.next*most))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	last, chunk := n <= most, b.buf[:min(n, most)]
	value, err := b.key.box.Open(chunk[:0], nonceOf(b.head, b.next, last), chunk, []byte(b.aad))
	if err != nil {
		return ErrDamaged
	}
	b.value, b.last, b.next = value, last, b.next+1
	return nil
}
