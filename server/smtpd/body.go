package smtpd

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/postroom/postroom/server/peers"
)

const (
	freeMemory   = 64 << 10 // part of a message that does not count against the shared memory
	largeMessage = 1 << 20  // from this size on the outbox needs a processor for it
)

// errFarTooLarge ends the reading of a message that is more than twice as large as it may be.
var errFarTooLarge = errors.New("message far too large")

// body is the content of a message that comes in.
type body struct {
	content []byte
	limit   int64
	most    int64 // octets to keep, if the beginning is enough; 0 means all
	read    int64 // octets, kept or not
	refused reply // why the content is refused; its code is 0 while it is not
	memory  *peers.Body
	held    int64 // bytes of memory
}

func newBody(limit int64, memory *peers.Body) *body {
	return &body{limit: limit, memory: memory}
}

// readDots reads the content of DATA up to the line with a single dot. It drops that line, and the dot that
// the client put before each line that begins with one. Only CRLF ends a line. A CR or LF alone is content:
// the outbox turns it into CRLF before it doubles dots, so the next server cannot read it differently. Next
// to a dot it is refused: there the client may have meant the end of the message, or an attacker wants the
// next server to see one.
func (b *body) readDots(r *bufio.Reader) error {
	lineStart, bare := true, false // the last piece ended with CRLF; with LF alone
	var last byte                  // its last octet
	for {
		piece, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return unexpected(err)
		}
		if lineStart && string(piece) == ".\r\n" {
			return nil
		}
		if b.read += int64(len(piece)); b.read > 2*b.limit {
			return errFarTooLarge
		}
		dot := piece[0] == '.'
		if dot && (bare || last == '\r') || bytes.Contains(piece, []byte("\r.")) || lineStart && dot &&
			endsBare(piece[1:]) {
			b.refuse(ambiguousEnd)
		}
		if lineStart && dot {
			b.keep(piece[1:])
		} else {
			b.keep(piece)
		}
		end := piece[len(piece)-1] == '\n'
		crlf := bytes.HasSuffix(piece, []byte("\r\n")) || len(piece) == 1 && end && last == '\r'
		lineStart, bare, last = end && crlf, end && !crlf, piece[len(piece)-1]
	}
}

// endsBare reports whether rest, which follows a dot, begins with a line break that is not CRLF.
func endsBare(rest []byte) bool {
	return len(rest) > 0 && (rest[0] == '\n' || rest[0] == '\r' && (len(rest) == 1 || rest[1] != '\n'))
}

// readChunk reads the octets of BDAT. Their number marks their end, so line breaks do not matter.
func (b *body) readChunk(r *bufio.Reader, size int64) error {
	if b.read += size; b.read > 2*b.limit {
		return errFarTooLarge
	}
	for size > 0 {
		piece, err := r.Peek(int(min(size, int64(max(1, r.Buffered())))))
		if err != nil {
			return unexpected(err)
		}
		b.keep(piece)
		size -= int64(len(piece))
		if _, err := r.Discard(len(piece)); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// keep appends piece to the content, unless that is refused.
func (b *body) keep(piece []byte) {
	if b.most > 0 {
		if b.read > b.limit {
			b.refuse(tooLarge(b.limit))
		}
		piece = piece[:min(int64(len(piece)), b.most-int64(len(b.content)))]
	}
	size := int64(len(b.content) + len(piece))
	switch {
	case b.refused.code != 0:
		return
	case size > b.limit:
		b.refuse(tooLarge(b.limit))
		return
	case size > int64(cap(b.content)) && !b.grow(size):
		b.refuse(tooMuchAtOnce)
		return
	}
	b.content = append(b.content, piece...)
}

// grow makes space for size octets. It returns false if the shared memory is used up.
func (b *body) grow(size int64) bool {
	space := min(max(size, 2*int64(cap(b.content)), 4<<10), max(size, b.limit))
	if space > freeMemory && space > b.held {
		if !b.memory.TryTake(space - b.held) {
			return false
		}
		b.held = space
	}
	content := make([]byte, len(b.content), space)
	copy(content, b.content)
	b.content = content
	return true
}

// refuse drops the content. The first reason counts.
func (b *body) refuse(why reply) {
	if b.refused.code == 0 {
		b.refused, b.content = why, nil
	}
}

// release gives the shared memory back.
func (b *body) release() {
	b.memory.Release()
}
