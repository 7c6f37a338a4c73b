package outbox

import (
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb/seal"
	"github.com/postroom/postroom/internal/signedtoken"
	"github.com/postroom/postroom/smtpsend"
)

// quick is a content that was packed for leaving immediately, with the beginning of its packed form. An
// attempt may change the content that it sends, so this is the one that was stored.
type quick struct{ content, head []byte }

// body is the content of a message for the sender. If packed is empty, it is read from Redis as it is sent.
func (d *Delivery) body(partition int, id, packed string, size int) (_ smtpsend.Body, q quick) {
	name := contentName(id)
	switch {
	case packed == "":
		return stored{codec: d.codec, name: name, size: size, packed: func(ctx context.Context) io.ReaderAt {
			return pieces{ctx: ctx, store: d.store, id: id, key: d.keys.content(partition, id)}
		}}, q
	case size > small:
		return stored{codec: d.codec, name: name, size: size,
			packed: func(context.Context) io.ReaderAt { return strings.NewReader(packed) }}, q
	}
	raw := []byte(packed)
	content, err := d.codec.unpack(raw, name, size)
	if err != nil {
		return stored{size: max(size, 1), err: err}, q
	}
	if isQuick(raw) {
		q = quick{content, raw[:min(len(raw), seal.BoxHead)]}
	}
	return smtpsend.Bytes(content), q
}

// repack packs a content again that was packed for leaving immediately, because its message stays. Without
// it, the content takes more memory.
func (d *Delivery) repack(ctx context.Context, c *claim) {
	if c.quick.head == nil {
		return
	}
	_, err := resealScript.RunReplicated(ctx, d.DB, []string{d.keys.content(c.partition, c.id)},
		resealArgs{ID: c.id, Former: c.quick.head, Value: d.codec.pack(c.quick.content, contentName(c.id), false)})
	if err != nil {
		d.log.DebugContext(ctx, "content not packed again", "message_id", c.id, "error", err)
	}
}

// stored is a large content, which is unpacked while it is sent. It implements smtpsend.Body.
type stored struct {
	codec  *codec
	name   string
	size   int
	packed func(ctx context.Context) io.ReaderAt
	err    error // why it can't be unpacked; nil until that is known
}

// Size implements smtpsend.Body.
func (s stored) Size() int64 { return int64(s.size) }

// Open implements smtpsend.Body.
func (s stored) Open(ctx context.Context) (io.ReadCloser, error) {
	packed, err := s.opened(ctx)
	if err != nil {
		return nil, err
	}
	return s.codec.stream(packed)
}

func (s stored) opened(ctx context.Context) (io.Reader, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.codec.reader(s.packed(ctx), s.name)
}

// pieces reads a packed content from Redis, piece by piece. A content that was deleted is empty.
type pieces struct {
	ctx   context.Context //nolint:containedctx // of the reader
	store *store
	id    string
	key   string
}

// ReadAt implements io.ReaderAt.
func (p pieces) ReadAt(into []byte, at int64) (int, error) {
	piece, err := p.store.DB.Client().GetRange(p.ctx, p.key, at, at+int64(len(into))-1).Result()
	if err != nil {
		return 0, redisError(err, "read content of message "+p.id)
	}
	n := copy(into, piece)
	if n < len(into) {
		return n, io.EOF
	}
	return n, nil
}

// opens returns an error if a content is sealed under a secret that this process does not have. Anything else
// that is wrong with it is found as it is sent.
func (d *Delivery) opens(ctx context.Context, content smtpsend.Body) error {
	if s, ok := content.(stored); ok {
		_, err := s.opened(ctx)
		if fault.CodeOf(err) == notOpened || fault.Is(err, fault.Unavailable) {
			return err
		}
	}
	return nil
}

// textOf returns the text to keep of a message that ends, as finish.lua takes it. If kept, the content has
// its own lifetime, which may end before the index has the text. Then the text is a copy.
func (d *Delivery) textOf(ctx context.Context, c *claim, kept bool) string {
	if d.opts.KeepText == 0 {
		return ""
	}
	if !kept && c.shared == "" && c.content.Size() <= shortMail {
		return keptContent
	}
	text := message.Shorten(c.text, d.opts.KeepText)
	if c.shared == "" {
		content, err := c.content.Open(ctx)
		if err != nil {
			d.log.WarnContext(ctx, "text not kept", "message_id", c.id, "error", err)
			return ""
		}
		text = message.Excerpt(io.Reader(content), d.opts.KeepText)
		_ = content.Close() // the rest is not needed
	}
	return keptText + string(d.codec.pack([]byte(d.withoutTokens(text)), textName(c.id), false))
}

// withoutTokens removes the tokens of links from a text that was sent: who finds it did not get the mail.
func (s *store) withoutTokens(text string) string {
	if s.Tokens == nil {
		return text
	}
	return signedLink.ReplaceAllStringFunc(text, func(link string) string {
		at := strings.LastIndexAny(link, "=/") + 1
		for _, p := range []signedtoken.Purpose{signedtoken.Unsubscribe, signedtoken.Open, signedtoken.Click,
			signedtoken.Sender, signedtoken.Confirm} {
			if _, err := s.Tokens.Read(p, link[at:]); err == nil {
				return link[:at]
			}
		}
		return link
	})
}

// signedLink matches what may be a link of additions.identity, of package senders or of package audience, up
// to the end of its token.
var signedLink = regexp.MustCompile(`(/(?:unsubscribe|preferences|sender|subscribers/confirm)\?t=|/[co]/)([A-Za-z0-9_-]{40,})`)
