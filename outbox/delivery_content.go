package outbox

import (
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/message/signedtoken"
	"github.com/postroom/postroom/smtpsend"
)

// stored is a large content, which is unpacked while it is sent. It implements smtpsend.Body.
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

// unreadable is a content that can't be unpacked. It implements smtpsend.Body.
type unreadable struct {
	size int
	err  error
}

// Size implements smtpsend.Body.
func (u unreadable) Size() int64 { return int64(max(u.size, 1)) }

// Open implements smtpsend.Body.
func (u unreadable) Open(context.Context) (io.ReadCloser, error) { return nil, u.err }

// body is the content of a message for the sender. If packed is empty, it is read from Redis as it is sent.
func (d *Delivery) body(partition int, id, packed string, size int) smtpsend.Body {
	switch {
	case packed == "":
		return stored{d.codec, size, func(ctx context.Context) io.Reader {
			return &pieces{ctx: ctx, store: d.store, id: id, key: d.keys.content(partition, id)}
		}}
	case size > small:
		return stored{d.codec, size, func(context.Context) io.Reader { return strings.NewReader(packed) }}
	}
	content, err := d.codec.unpack([]byte(packed), size)
	if err != nil {
		return unreadable{size, err}
	}
	return smtpsend.Bytes(content)
}

// pieces reads a packed content from Redis, piece by piece. A content that was deleted is empty.
type pieces struct {
	ctx   context.Context //nolint:containedctx // of the reader
	store *store
	id    string
	key   string
	at    int64
	piece string // not read yet
	last  bool
}

func (p *pieces) Read(into []byte) (int, error) {
	if p.piece == "" {
		if p.last {
			return 0, io.EOF
		}
		piece, err := p.store.DB.Client().GetRange(p.ctx, p.key, p.at, p.at+small-1).Result()
		if err != nil {
			return 0, redisError(err, "read content of message "+p.id)
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

// textOf returns what is kept of the text of a message that ends, as finish.lua takes it.
func (d *Delivery) textOf(ctx context.Context, c *claim) string {
	if d.opts.KeepText == 0 {
		return ""
	}
	if c.shared == "" && c.content.Size() <= shortMail {
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
	return keptText + string(d.codec.pack([]byte(d.withoutTokens(text))))
}

// signedLink matches what may be a link of additions.identity, up to the end of its token.
var signedLink = regexp.MustCompile(`(/unsubscribe\?t=|/preferences\?t=|/[co]/)([A-Za-z0-9_-]{40,})`)

// withoutTokens removes the tokens of links from a text that was sent: who finds it did not get the mail.
func (s *store) withoutTokens(text string) string {
	if s.Tokens == nil {
		return text
	}
	return signedLink.ReplaceAllStringFunc(text, func(link string) string {
		at := strings.LastIndexAny(link, "=/") + 1
		for _, p := range []signedtoken.Purpose{signedtoken.Unsubscribe, signedtoken.Open, signedtoken.Click} {
			if _, err := s.Tokens.Read(p, link[at:]); err == nil {
				return link[:at]
			}
		}
		return link
	})
}
