package outbox

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// small is how much of a content is handled in one piece. Nearly all mail is smaller. What is larger, packed,
// does not come with the claim of its message, which would have Redis and the worker hold it several times
// over: it is fetched in pieces of this size while it is sent. What is larger unpacked is unpacked while it
// is sent.
const small = 256 << 10

// lookback is how far back in a content a repetition is found, and so what unpacking piece by piece keeps of
// it.
const lookback = 256 << 10

// codec compresses contents. It is safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder // of whole contents
	streams sync.Pool     // of *zstd.Decoder, each for one content at a time
}

func newCodec() (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(lookback))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// pack compresses a content. The room it takes beforehand is what text needs or, for a large one, what base64
// does.
func (c *codec) pack(content []byte) []byte {
	room := len(content)/2 + 64
	if len(content) > small {
		room = len(content)*4/5 + 64
	}
	return c.encoder.EncodeAll(content, make([]byte, 0, room))
}

// unpack gives the content, which must have the size that its record says. More is refused before it is
// unpacked.
func (c *codec) unpack(packed []byte, size int) ([]byte, error) {
	content, err := c.decoder.DecodeAll(packed, make([]byte, 0, size))
	if err == nil && len(content) != size {
		err = fmt.Errorf("%d octets of %d", len(content), size)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack content: %w", err)
	}
	return content, nil
}

// unpackAll gives what was packed, up to so many octets, by the size that stands in its head.
func (c *codec) unpackAll(packed []byte, most int) ([]byte, error) {
	var head zstd.Header
	if err := head.Decode(packed); err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	size := uint64(unsized)
	if head.HasFCS {
		size = head.FrameContentSize
	}
	if size > uint64(most) {
		return nil, fmt.Errorf("unpack: %d octets, of %d at most", size, most)
	}
	content, err := c.decoder.DecodeAll(packed, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	return content, nil
}

// unsized is below how many octets the head of what was packed does not say how many they are (RFC 8878
// section 3.1.1.1.4).
const unsized = 256

// stream unpacks a content while it is read.
func (c *codec) stream(packed io.Reader) (io.ReadCloser, error) {
	decoder, _ := c.streams.Get().(*zstd.Decoder)
	if decoder == nil {
		var err error
		if decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxWindow(lookback)); err != nil {
			return nil, fmt.Errorf("make zstd decoder: %w", err)
		}
	}
	if err := decoder.Reset(packed); err != nil {
		return nil, fmt.Errorf("unpack content: %w", err)
	}
	return &unpacking{decoder, c}, nil
}

// unpacking is a content being read. It ends with an error where the checksum is wrong.
type unpacking struct {
	decoder *zstd.Decoder
	codec   *codec
}

func (u *unpacking) Read(b []byte) (int, error) {
	n, err := u.decoder.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // the decoder gives just that
		err = fmt.Errorf("unpack content: %w", err)
	}
	return n, err
}

// Close gives the decoder to the next content.
func (u *unpacking) Close() error {
	err := u.decoder.Reset(nil)
	u.codec.streams.Put(u.decoder)
	return err
}
