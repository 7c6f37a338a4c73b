package outbox

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/smtpsend"
)

// small is how much of a content is handled in one piece. Nearly all mail is smaller. What is larger, packed, does not come with the claim of its
// message, which would have Redis and the worker hold it several times over: it is fetched in pieces of this size while it is sent. What is larger
// unpacked is unpacked while it is sent.
const small = 256 << 10

// lookback is how far back in a content a repetition is found, and so what unpacking piece by piece keeps of it.
const lookback = 256 << 10

// codec compresses contents. It is safe for concurrent use.
type codec struct {
	encoder *zstd.Encoder
	decoder *zstd.Decoder // of whole contents
	streams sync.Pool     // of *zstd.Decoder, each for one content at a time
}

func newCodec() (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithWindowSize(lookback))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(2), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("make zstd decoder: %w", err)
	}
	return &codec{encoder: encoder, decoder: decoder}, nil
}

// pack compresses a content. The room it takes beforehand is what text needs or, for a large one, what base64 does.
func (c *codec) pack(content []byte) []byte {
	room := len(content)/2 + 64
	if len(content) > small {
		room = len(content)*4/5 + 64
	}
	return c.encoder.EncodeAll(content, make([]byte, 0, room))
}

// unpack gives the content, which must have the size that its record says. More is refused before it is unpacked.
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

// unsized is below how many octets the head of what was packed does not say how many they are (RFC 8878 section 3.1.1.1.4).
const unsized = 256

// stream unpacks a content while it is read.
func (c *codec) stream(packed io.Reader) (io.ReadCloser, error) {
	decoder, _ := c.streams.Get().(*zstd.Decoder)
	if decoder == nil {
		var err error
		if decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(lookback)); err != nil {
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

// stored is the content of a message that is too large to be held. It implements smtpsend.Body.
type stored struct {
	codec  *codec
	size   int
	packed func(ctx context.Context) io.Reader
}

// Size implements smtpsend.Body.
func (s stored) Size() int64 { return int64(s.size) }

// Open implements smtpsend.Body.
func (s stored) Open(ctx context.Context) (io.ReadCloser, error) {
	return s.codec.stream(s.packed(ctx))
}

// unreadable is a content that can't be unpacked. The attempt to send it says why. It implements smtpsend.Body.
type unreadable struct {
	size int
	err  error
}

// Size implements smtpsend.Body.
func (u unreadable) Size() int64 { return int64(max(u.size, 1)) }

// Open implements smtpsend.Body.
func (u unreadable) Open(context.Context) (io.ReadCloser, error) { return nil, u.err }

// hashFiles adds the files of a request to a hash and gives the request without them: in its JSON they would be held three times over.
func hashFiles(sum io.Writer, req api.SubmitRequest) api.SubmitRequest {
	move := func(file *[]byte) {
		_ = binary.Write(sum, binary.BigEndian, int64(len(*file))) // a hash takes everything
		_, _ = sum.Write(*file)
		*file = nil
	}
	if len(req.Raw) > 0 {
		move(&req.Raw)
	}
	req.Attachments = slices.Clone(req.Attachments)
	for i := range req.Attachments {
		move(&req.Attachments[i].Content)
	}
	return req
}

// incomingFor is how long a content lies in wait for the script that accepts its message.
const incomingFor = 5 * time.Minute

// errContentLost says that a content was gone before its message was accepted, with the Redis that had it.
var errContentLost = fault.New(fault.Unavailable, "ContentLost", "The message store lost this message as it came in; send it again")

// bringIn puts a large content into Redis ahead of the script that accepts its message, which finds it there. A script would take it along as an
// argument and copy it twice, and Redis would answer nobody else in the meantime: 40 ms for 20 MB.
func (b *Outbox) bringIn(ctx context.Context, a acceptance) error {
	content := a.args[argContent].([]byte)
	if len(content) <= small {
		return nil
	}
	a.args[argContent] = ""
	return b.lay(ctx, a.partition, a.answer.QueueID, content)
}

// takeOut forgets a content that was brought in for a message that is not accepted after all. What stays expires.
func (b *Outbox) takeOut(ctx context.Context, a acceptance) {
	if a.args[argContent] != "" {
		return
	}
	if err := b.DB.Client().Del(ctx, b.store.incoming(a.partition, a.id)).Err(); err != nil {
		b.log.DebugContext(ctx, "content left behind", "message_id", a.id, "error", err)
	}
}

// lay puts a large content where the script that is to take it on finds it by its name.
func (b *Outbox) lay(ctx context.Context, partition int, name string, content []byte) error {
	if err := b.DB.Client().Set(ctx, b.store.incoming(partition, name), content, incomingFor).Err(); err != nil {
		return away(err, "bring in "+name)
	}
	return nil
}

// body is the content of a message as the sender takes it. Packed is empty where it is to be fetched.
func (b *Outbox) body(partition int, id, packed string, size int) smtpsend.Body {
	switch {
	case packed == "":
		return stored{b.codec, size, func(ctx context.Context) io.Reader {
			return &pieces{ctx: ctx, outbox: b, id: id, key: b.store.content(partition, id)}
		}}
	case size > small:
		return stored{b.codec, size, func(context.Context) io.Reader { return strings.NewReader(packed) }}
	}
	content, err := b.codec.unpack([]byte(packed), size)
	if err != nil {
		return unreadable{size, err}
	}
	return smtpsend.Bytes(content)
}

// pieces reads a packed content out of Redis, piece by piece. One that is gone is empty.
type pieces struct {
	ctx    context.Context //nolint:containedctx // of whoever reads
	outbox *Outbox
	id     string
	key    string
	at     int64
	piece  string // not read yet
	last   bool
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.piece == "" {
		if p.last {
			return 0, io.EOF
		}
		piece, err := p.outbox.DB.Client().GetRange(p.ctx, p.key, p.at, p.at+small-1).Result()
		if err != nil {
			return 0, away(err, "read content of message "+p.id)
		}
		p.piece, p.at, p.last = piece, p.at+int64(len(piece)), len(piece) < small
		if piece == "" {
			return 0, io.EOF
		}
	}
	n := copy(into, p.piece)
	p.piece = p.piece[n:]
	return n, nil
}
