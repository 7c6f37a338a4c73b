package outbox

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/message"
)

// Document is a message as the search index wants it.
type Document struct {
	Message   api.LoggedMessage
	Text      string // what people read of it, without markup, as much as Options.KeepText
	TextKnown bool   // false: its content is gone, and so is its text, unless the index has it
}

// textShort is more than what is ever packed of a text; a longer one is not among those that were kept.
const textShort = 1 << 20

// A content up to wholeText bytes, packed, is fetched together with others; Redis has all of them in its buffers at once. Of a larger one the
// beginning is fetched by itself: as much as the first block of zstd can take (RFC 8878 section 3.1.1.2.4), for a block is unpacked whole or not at all.
const (
	wholeText  = 4 << 10
	firstBlock = 132 << 10
)

// Documents reads messages, live or ended; those that are no longer remembered are missing. The text of a live message is read from its
// content, that of an ended one is kept until Indexed.
func (b *Outbox) Documents(ctx context.Context, ids []string) ([]Document, error) {
	list := make([]entry, 0, len(ids))
	for _, id := range ids {
		if _, ok := partitionOf(id, b.DB.Partitions()); ok {
			list = append(list, entry{id: id})
		}
	}
	rows, err := b.readLog(ctx, list)
	if err != nil {
		return nil, away(err, "read messages for the search index")
	}
	docs := make([]Document, len(rows))
	for i, r := range rows {
		docs[i].Message = r.logged()
	}
	return docs, b.addTexts(ctx, rows, docs)
}

// addTexts finds the texts of messages: in one round trip, but for those of large messages and of letters this process does not know.
func (b *Outbox) addTexts(ctx context.Context, rows []row, docs []Document) error {
	if b.opts.KeepText == 0 {
		return nil
	}
	pipe := b.DB.Client().Pipeline()
	found, contents := make([]*redis.StringCmd, len(rows)), make([]*redis.StringCmd, len(rows))
	for i, r := range rows {
		p, _ := partitionOf(r.id, b.DB.Partitions())
		switch {
		case r.ended != 0:
			found[i], contents[i] = pipe.HGet(ctx, b.store.texts(p), r.id), pipe.Get(ctx, b.store.content(p, r.id))
		case r.letter == "":
			found[i] = pipe.GetRange(ctx, b.store.content(p, r.id), 0, wholeText)
		default:
			found[i] = pipe.Get(ctx, b.store.content(p, r.id))
		}
	}
	if err := execRead(ctx, pipe); err != nil {
		return away(err, "read texts for the search index")
	}
	for i, r := range rows {
		packed := found[i].Val()
		if packed == keptContent {
			packed += contents[i].Val()
		}
		if packed == "" || packed == keptContent { // it ended meanwhile, or its text was not kept
			continue
		}
		text, err := b.excerpt(ctx, r, packed)
		if err != nil {
			b.log.WarnContext(ctx, "text not read", "message_id", r.id, "error", err)
			continue
		}
		docs[i].Text, docs[i].TextKnown = text, true
	}
	return nil
}

// excerpt reads the text of a message: as it was kept, as its letter says it, or from the beginning of its content.
func (b *Outbox) excerpt(ctx context.Context, r row, packed string) (string, error) {
	switch {
	case r.ended != 0 && packed[:1] == keptText:
		text, err := b.codec.unpackAll([]byte(packed[1:]), textShort)
		return string(text), err
	case r.ended != 0:
		content, err := b.codec.unpackAll([]byte(packed[1:]), textShort)
		return message.Excerpt(bytes.NewReader(content), b.opts.KeepText), err
	case r.letter != "":
		p, _ := partitionOf(r.id, b.DB.Partitions())
		_, words, err := b.rewrite(ctx, p, r, []byte(packed))
		return message.Shorten(words.Text, b.opts.KeepText), err
	}
	if len(packed) > wholeText {
		p, _ := partitionOf(r.id, b.DB.Partitions())
		var err error
		if packed, err = b.DB.Client().GetRange(ctx, b.store.content(p, r.id), 0, firstBlock-1).Result(); err != nil {
			return "", away(err, "read content of message "+r.id)
		}
	}
	content, err := b.codec.stream(strings.NewReader(packed))
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }() // it was read as far as it was needed
	return message.Excerpt(content, b.opts.KeepText), nil
}

// How a text is kept of a message that ended: packed by itself, after a letter, or in its content, which stays where it is. That costs nothing now,
// and little room where a mail is short.
const (
	keptText    = "t"
	keptContent = "c"
	shortMail   = 8 << 10
)

// textOf is what is kept of the text of a message that ends.
func (b *Outbox) textOf(ctx context.Context, c *claim) string {
	if b.opts.KeepText == 0 {
		return ""
	}
	if c.letter == "" && c.content.Size() <= shortMail {
		return keptContent
	}
	text := message.Shorten(c.text, b.opts.KeepText)
	if c.letter == "" {
		content, err := c.content.Open(ctx)
		if err != nil {
			b.log.WarnContext(ctx, "text not kept", "message_id", c.id, "error", err)
			return ""
		}
		text = message.Excerpt(io.Reader(content), b.opts.KeepText)
		_ = content.Close() // it was read as far as it was needed
	}
	return keptText + string(b.codec.pack([]byte(text)))
}

// Indexed says that the search index has the texts of messages that ended, which are kept for it no longer.
func (b *Outbox) Indexed(ctx context.Context, ids []string) error {
	parts := make(map[int][]any)
	for _, id := range ids {
		if p, ok := partitionOf(id, b.DB.Partitions()); ok {
			parts[p] = append(parts[p], id)
		}
	}
	pipe := b.DB.Pipeline()
	for p, some := range parts {
		pipe.Script(indexedScript, []string{b.store.texts(p)}, some...)
	}
	if err := pipe.Exec(ctx); err != nil {
		return away(err, "forget texts that are indexed")
	}
	return nil
}
