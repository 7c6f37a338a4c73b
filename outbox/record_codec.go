package outbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	json "github.com/go-json-experiment/json/v1" // half of the time of encoding/json
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/postroom/postroom/internal/redisdb/seal"
)

// small is the largest content that is handled in one piece. Nearly all mail is smaller. A larger packed
// content is read in pieces of this size while it is sent; with the claim, Redis and the worker would hold it
// several times. A larger unpacked content is unpacked while it is sent.
const small = 256 << 10

// lookback is the window of zstd: how far back a repetition is found, and what unpacking keeps in memory.
const lookback = 256 << 10

// A content that leaves immediately is packed with S2. That takes a quarter of zstd's time, and up to 1.6
// times its memory. The first byte is quickFormat, which begins no frame of zstd. A checksum of the content
// and a block of S2 follow.
const (
	quickFormat = 2
	quickHead   = 1 + crc32.Size
	quickMost   = 32 << 10 // bytes of the largest content that is packed so
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// codec compresses contents, and seals them if it should. It is safe for concurrent use.
type codec struct {
	sealer
	encoder *zstd.Encoder
	decoder *zstd.Decoder // for whole contents
	streams sync.Pool     // each *zstd.Decoder is for one content at a time
}

func newCodec(s sealer) (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2),
		zstd.WithWindowSize(lookback))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return &codec{sealer: s, encoder: encoder, decoder: decoder}, nil
}

// pack compresses a content, and seals it for its record. quick says that it leaves immediately.
func (c *codec) pack(content []byte, name string, quick bool) []byte {
	head := 0
	if c.sealing {
		head = seal.BoxHead
	}
	var packed []byte
	if quick && len(content) <= quickMost {
		packed = make([]byte, head+quickHead+s2.MaxEncodedLen(len(content))+seal.BoxTag)
		packed[head] = quickFormat
		binary.BigEndian.PutUint32(packed[head+1:], crc32.Checksum(content, castagnoli))
		packed = packed[:head+quickHead+len(s2.Encode(packed[head+quickHead:], content))]
	} else {
		room := len(content)/2 + 64 // for text
		if len(content) > small {
			room = len(content)*4/5 + 64 // for base64
		}
		packed = c.encoder.EncodeAll(content, make([]byte, head, seal.BoxSize(room)))
	}
	if !c.sealing {
		return packed
	}
	return c.ring.SealBox(packed, name)
}

// unquick unpacks a content of at most most bytes that was packed with S2.
func unquick(packed []byte, most int) ([]byte, error) {
	if len(packed) < quickHead {
		return nil, errors.New("unpack content: it has no checksum")
	}
	size, err := s2.DecodedLen(packed[quickHead:])
	if err == nil && size > most {
		err = fmt.Errorf("%d octets, of %d at most", size, most)
	}
	var content []byte
	if err == nil {
		content, err = s2.Decode(nil, packed[quickHead:])
	}
	if err == nil && crc32.Checksum(content, castagnoli) != binary.BigEndian.Uint32(packed[1:]) {
		err = errors.New("wrong checksum")
	}
	if err != nil {
		return nil, fmt.Errorf("unpack content: %w", err)
	}
	return content, nil
}

// isQuick reports whether a content was packed with S2. If it is sealed, it was opened in place.
func isQuick(packed []byte) bool {
	if seal.IsBox(packed) && len(packed) > seal.BoxHead {
		packed = packed[seal.BoxHead:]
	}
	return len(packed) > 0 && packed[0] == quickFormat
}

// unpack returns a content. A content larger than the size in its record is refused before it is unpacked.
// unpack spoils packed.
func (c *codec) unpack(packed []byte, name string, size int) ([]byte, error) {
	packed, err := c.opened(packed, name)
	if err != nil {
		return nil, err
	}
	var content []byte
	if isQuick(packed) {
		content, err = unquick(packed, size)
	} else {
		content, err = c.decoder.DecodeAll(packed, make([]byte, 0, size))
	}
	if err == nil && len(content) != size {
		err = fmt.Errorf("%d octets of %d", len(content), size)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack content: %w", err)
	}
	return content, nil
}

// unpackAll returns a content of at most most bytes. Its size is in the header of the frame. It spoils
// packed.
func (c *codec) unpackAll(packed []byte, name string, most int) ([]byte, error) {
	packed, err := c.opened(packed, name)
	if err != nil {
		return nil, err
	}
	if isQuick(packed) {
		return unquick(packed, most)
	}
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

// unsized is the size below which the header has no size (RFC 8878 section 3.1.1.1.4).
const unsized = 256

// stream unpacks a content that is not sealed while it is read.
func (c *codec) stream(packed io.Reader) (io.ReadCloser, error) {
	var first [1]byte
	n, _ := io.ReadFull(packed, first[:]) // an error comes again
	packed = io.MultiReader(bytes.NewReader(first[:n]), packed)
	if isQuick(first[:n]) {
		whole, err := io.ReadAll(packed)
		if err == nil {
			whole, err = unquick(whole, quickMost)
		}
		return io.NopCloser(bytes.NewReader(whole)), err
	}
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

// unpacking reads a content. A wrong checksum is an error at its end.
type unpacking struct {
	decoder *zstd.Decoder
	codec   *codec
}

func (u *unpacking) Read(b []byte) (int, error) {
	n, err := u.decoder.Read(b)
	if err != nil && err != io.EOF { //nolint:errorlint // the decoder returns it unwrapped
		err = fmt.Errorf("unpack content: %w", err)
	}
	return n, err
}

// Close returns the decoder to the pool.
func (u *unpacking) Close() error {
	err := u.decoder.Reset(nil)
	u.codec.streams.Put(u.decoder)
	return err
}

// packer packs parts of messages: the fields of envelopes, statuses and log entries, the JSON of others. They
// are alike, so they are compressed against an example, which halves the memory of JSON in Redis. S2
// compresses them as well as zstd does, in a sixth of the time: so short a text gains little from an entropy
// code. It is safe for concurrent use.
type packer struct{ example *s2.Dict }

// The first byte of packed data. A changed example takes other numbers. The old example stays as long as
// Redis has data that was packed with it.
const (
	jsonFormat   = 1
	fieldsFormat = 3
)

// packedMost is the largest part that is unpacked, in bytes.
const packedMost = 256 << 20

// packedExample has what records have in common, with the most frequent text at the end.
const packedExample = `"gateway":"","tls":"TLS 1.3","host":"smtp.","doubts":1,"inDoubt":true,"held":true,"subject":"","tags":[""],"metadata":{"":""},"key":"",` +
	`"lane":"bulk","result":"failed","result":"cancelled","reason":"api","error":"EENVELOPE","enhanced":"5.1.1","code":550,"line":"550 5.1.1 ` +
	`"last":{"message":"","code":"EENVELOPE","smtp":550}"type":"messageDeliveryError","type":"messageFailed","type":"messageCancelled","type":"messageReplayed",` +
	`{"envelope":{"account":"default","source":"smtp","source":"api","messageId":"\u003c@example.com\u003e","from":"@example.com","to":["@gmail.com","@example.com"],"subject":"","size":` +
	`},"status":{"recipients":[{"status":"failed","response":"550 5.1.1 ","attempts":1},{"status":"sent","response":"250 2.0.0 Ok: queued as ","attempts":1}],` +
	`"log":[{"number":1,"start":"2026-01-01T00:00:00.000Z","end":"2026-01-01T00:00:00.000Z","host":":587","tls":"TLS 1.3","code":250,"line":"250 2.0.0 Ok: queued as "}],` +
	`"events":[{"id":"01K","type":"messageSent","at":17,"attempt":1}]},"result":"sent","at":17,"created":17,"scheduled":17,"lane":"transactional","attempts":1,"max":10}` +
	".com:587\x00\x0eTLS 1.3\x00H250 2.0.0 Ok: queued as \x00\x00\x00\x00\x02401K\x00\x16messageSent\x00\x02\x00\x00\x08sent\x00\x00\x00" +
	"\x1atransactional\x02\x08sentH250 2.0.0 Ok: queued as \x02\x02\x02\xf4\x03\x06api\x00\x00\x00\x00\x00\x00\x00\x00\x02"

func newPacker() *packer {
	return &packer{example: s2.MakeDict([]byte(packedExample), nil)}
}

// pack packs a part of a message's record.
func (p *packer) pack(id string, part any) (string, error) {
	format, raw, err := byte(jsonFormat), []byte(nil), error(nil)
	if p, ok := part.(fielded); ok {
		format, raw = fieldsFormat, appendFields(make([]byte, 0, 512), p)
	} else if raw, err = json.Marshal(part); err != nil {
		return "", fmt.Errorf("write %T of message %s: %w", part, id, err)
	}
	packed := make([]byte, 1+s2.MaxEncodedLen(len(raw)))
	packed[0] = format
	return string(packed[:1+len(p.example.Encode(packed[1:], raw))]), nil
}

// unpack unpacks a part of a message's record.
func (p *packer) unpack(id string, packed []byte, part any) error {
	raw, err := p.raw(packed)
	switch into, ok := part.(fielded); {
	case err != nil:
	case ok != (packed[0] == fieldsFormat):
		err = errOtherVersion
	case ok:
		err = readFields(raw, into)
	default:
		err = json.Unmarshal(raw, part)
	}
	if err != nil {
		return fmt.Errorf("read %T of message %s: %w", part, id, err)
	}
	return nil
}

var errOtherVersion = errors.New("it was not packed by this version of Postroom")

// raw returns the fields or the JSON.
func (p *packer) raw(packed []byte) ([]byte, error) {
	if len(packed) == 0 || packed[0] != jsonFormat && packed[0] != fieldsFormat {
		return nil, errOtherVersion
	}
	size, err := s2.DecodedLen(packed[1:])
	if err == nil && size > packedMost {
		err = fmt.Errorf("%d bytes, of %d at most", size, packedMost)
	}
	if err != nil {
		return nil, err
	}
	return p.example.Decode(make([]byte, 0, size), packed[1:])
}

// unpackStatus unpacks a status; "" is the status before the first attempt.
func (p *packer) unpackStatus(id, packed string, e envelope) (status, error) {
	if packed == "" {
		return newStatus(e), nil
	}
	var s status
	if err := p.unpack(id, []byte(packed), &s); err != nil {
		return s, err
	}
	if len(s.Recipients) != len(e.To) {
		return s, fmt.Errorf("read status of message %s: %d recipients, envelope has %d", id, len(s.Recipients),
			len(e.To))
	}
	return s, nil
}
