package outbox

import (
	"bytes"
	"context"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/message"
	"github.com/postroom/postroom/templates/batch"
)

// Document is a message as the search index wants it.
type Document struct {
	api.LoggedMessage
	Text      string // visible text without markup, as much as Options.KeepText
	TextKnown bool   // false: its content is gone, and so is its text, unless the index has it
}

// textShort is more than what is ever packed of a text; a longer one is not among those that were kept.
const textShort = 1 << 20

// A content up to wholeText bytes, packed, is fetched together with others; Redis has all of them in its
// buffers at once. Of a larger one the beginning is fetched by itself: as much as the first block of zstd can
// take (RFC 8878 section 3.1.1.2.4), for a block is unpacked whole or not at all.
const (
	wholeText  = 4 << 10
	firstBlock = 132 << 10
)

// Documents reads messages, live or ended; those that are no longer remembered are missing. The text of a
// live message is read from its content, that of an ended one is kept until Indexed.
func (rd *Reader) Documents(ctx context.Context, ids []string) ([]Document, error) {
	list := make([]entry, 0, len(ids))
	for _, id := range ids {
		if _, ok := partitionOf(id, rd.DB.Partitions()); ok {
			list = append(list, entry{id: id})
		}
	}
	rows, err := rd.readLog(ctx, list)
	if err != nil {
		return nil, away(err, "read messages for the search index")
	}
	docs := make([]Document, len(rows))
	for i, r := range rows {
		docs[i].LoggedMessage = r.logged()
	}
	return docs, rd.addTexts(ctx, rows, docs)
}

// addTexts finds the texts of messages: in one round trip, but for those of large messages and of shared
// contents that this process has not cached.
func (rd *Reader) addTexts(ctx context.Context, rows []row, docs []Document) error {
	if rd.opts.KeepText == 0 {
		return nil
	}
	pipe := rd.DB.Client().Pipeline()
	found, contents := make([]*redis.StringCmd, len(rows)), make([]*redis.StringCmd, len(rows))
	for i, r := range rows {
		p, _ := partitionOf(r.id, rd.DB.Partitions())
		switch {
		case r.ended != 0:
			found[i], contents[i] = pipe.HGet(ctx, rd.keys.texts(p), r.id), pipe.Get(ctx, rd.keys.content(p, r.id))
		case r.shared == "":
			found[i] = pipe.GetRange(ctx, rd.keys.content(p, r.id), 0, wholeText)
		default:
			found[i] = pipe.Get(ctx, rd.keys.content(p, r.id))
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
		text, err := rd.excerpt(ctx, r, packed)
		if err != nil {
			rd.log.WarnContext(ctx, "text not read", "message_id", r.id, "error", err)
			continue
		}
		docs[i].Text, docs[i].TextKnown = text, true
	}
	return nil
}

// excerpt reads the text of a message: as it was kept, as it is rendered from its shared content, or from the
// beginning of its content.
func (rd *Reader) excerpt(ctx context.Context, r row, packed string) (string, error) {
	switch {
	case r.ended != 0 && packed[:1] == keptText:
		text, err := rd.codec.unpackAll([]byte(packed[1:]), textShort)
		return string(text), err
	case r.ended != 0:
		content, err := rd.codec.unpackAll([]byte(packed[1:]), textShort)
		return message.Excerpt(bytes.NewReader(content), rd.opts.KeepText), err
	case r.shared != "":
		p, _ := partitionOf(r.id, rd.DB.Partitions())
		var personal batch.Personalization
		if err := rd.jsons.unpack(r.id, []byte(packed), &personal); err != nil {
			return "", err
		}
		_, words, err := rd.render(ctx, p, r.shared, r.id, r.envelope, personal)
		return message.Shorten(words.Text, rd.opts.KeepText), err
	}
	if len(packed) > wholeText {
		p, _ := partitionOf(r.id, rd.DB.Partitions())
		var err error
		if packed, err = rd.DB.Client().GetRange(ctx, rd.keys.content(p, r.id), 0,
			firstBlock-1).Result(); err != nil {
			return "", away(err, "read content of message "+r.id)
		}
	}
	content, err := rd.codec.stream(strings.NewReader(packed))
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }() // it was read as far as it was needed
	return message.Excerpt(content, rd.opts.KeepText), nil
}

// Indexed says that the search index has the texts of messages that ended, which are kept for it no longer.
func (rd *Reader) Indexed(ctx context.Context, ids []string) error {
	parts := make(map[int][]string)
	for _, id := range ids {
		if p, ok := partitionOf(id, rd.DB.Partitions()); ok {
			parts[p] = append(parts[p], id)
		}
	}
	pipe := rd.DB.Pipeline()
	for p, some := range parts {
		indexedScript.Add(pipe, []string{rd.keys.texts(p)}, some)
	}
	if err := pipe.Exec(ctx); err != nil {
		return away(err, "forget texts that are indexed")
	}
	return nil
}
