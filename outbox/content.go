package outbox

import (
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// codec compresses contents. Encoder and decoder are safe for concurrent use through EncodeAll and DecodeAll.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

// newCodec makes a codec that refuses to unpack more than limit bytes, the largest message there can be.
func newCodec(limit int) (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(1<<20))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecoderMaxMemory(uint64(limit)+1<<20))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

func (c *codec) pack(content []byte) []byte {
	return c.encoder.EncodeAll(content, make([]byte, 0, len(content)/2+64))
}

func (c *codec) unpack(packed []byte, size int) ([]byte, error) {
	content, err := c.decoder.DecodeAll(packed, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("unpack content: %w", err)
	}
	return content, nil
}
