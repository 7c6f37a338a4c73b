package outbox

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Document is a message for the search index.
type Document struct {
	api.LoggedMessage
	Text      string // visible text without markup, Options.KeepText bytes at most
	TextKnown bool   // false: Postroom does not have its text any more
}

// textShort is more than the size of any text that is kept.
const textShort = 1 << 20

// Packed contents of at most wholeText bytes are read together; Redis has all of them in its buffers at once.
// Of a larger content the beginning is read by itself. It has the size of the first block of zstd (RFC 8878
// section 3.1.1.2.4), because a part of a block can't be unpacked. If it is sealed, that is its first chunk,
// and one byte more shows that it is not the last.
const (
	wholeText  = 4 << 10
	firstBlock = seal.BoxChunk
	firstPiece = seal.BoxHead + firstBlock + seal.BoxTag + 1
)

// Documents reads messages, live or in the log; others are left out. The text of a live message is read from
// its content. The text of an ended message is kept until Indexed.
func (rd *Reader) Documents(ctx context.Context, ids []string) ([]Document, error) {
	known := slices.DeleteFunc(entriesOf(ids), func(e entry) bool {
		_, ok := partitionOf(e.id, rd.DB.Partitions())
		return !ok
	})
	rows, err := rd.readLog(ctx, known)
	if err != nil {
		return nil, redisError(err, "read messages for the search index")
	}
	if err := rd.addOutcomes(ctx, rows); err != nil {
		return nil, err
	}
	docs := make([]Document, len(rows))
	for i, r := range rows {
		docs[i].LoggedMessage = r.logged()
	}
	return docs, rd.addTexts(ctx, rows, docs)
}

// addTexts reads the texts of messages: in one round trip, and one more for short mail that ended, apart from
// those of large messages and of shared contents that this process has not cached.
func (rd *Reader) addTexts(ctx context.Context, rows []row, docs []Document) error {
	if rd.opts.KeepText == 0 {
		return nil
	}
	pipe := rd.DB.Client().Pipeline()
	found := make([]*redis.StringCmd, len(rows))
	for i, r := range rows {
		key := rd.keys.content(r.partition, r.id)
		switch {
		case r.ended != 0:
			found[i] = pipe.HGet(ctx, rd.keys.texts(r.partition), r.id)
		case r.shared == "":
			found[i] = pipe.GetRange(ctx, key, 0, wholeText)
		default:
			found[i] = pipe.Get(ctx, key)
		}
	}
	if err := execRead(ctx, pipe); err != nil {
		return redisError(err, "read texts for the search index")
	}
	contents, err := shortContents(ctx, rd.store, rows, found)
	if err != nil {
		return redisError(err, "read contents for the search index")
	}
	for i, r := range rows {
		packed := found[i].Val()
		if packed == keptContent {
			packed += contents[r.id]
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

// shortContents reads the contents that stayed for the search index, by the ids of their messages.
func shortContents(ctx context.Context, s *store, rows []row, texts []*redis.StringCmd) (map[string]string,
	error) {
	pipe, got := s.DB.Client().Pipeline(), map[string]*redis.StringCmd{}
	for i, r := range rows {
		if r.ended != 0 && texts[i].Val() == keptContent {
			got[r.id] = pipe.Get(ctx, s.keys.content(r.partition, r.id))
		}
	}
	if len(got) == 0 {
		return nil, nil
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	contents := make(map[string]string, len(got))
	for id, cmd := range got {
		contents[id] = cmd.Val()
	}
	return contents, nil
}

// excerpt returns the text of a message: the kept text, the text rendered from shared content, or the text of
// the beginning of its content.
func (rd *Reader) excerpt(ctx context.Context, r row, packed string) (string, error) {
	switch {
	case r.ended != 0 && packed[:1] == keptText:
		text, err := rd.codec.unpackAll([]byte(packed[1:]), textName(r.id), textShort)
		return string(text), err
	case r.ended != 0:
		content, err := rd.codec.unpackAll([]byte(packed[1:]), contentName(r.id), textShort)
		return message.Excerpt(bytes.NewReader(content), rd.opts.KeepText), err
	case r.shared != "":
		personal, err := rd.personalOf(r.id, []byte(packed))
		if err != nil {
			return "", err
		}
		r.envelope.preview = true
		_, words, err := rd.render(ctx, r.partition, r.shared, r.id, r.envelope, personal)
		return message.Shorten(words.Text, rd.opts.KeepText), err
	}
	if len(packed) > wholeText {
		var err error
		key := rd.keys.content(r.partition, r.id)
		if packed, err = rd.DB.Client().GetRange(ctx, key, 0, firstPiece-1).Result(); err != nil {
			return "", redisError(err, "read content of message "+r.id)
		}
	}
	opened, err := rd.codec.reader(strings.NewReader(packed), contentName(r.id))
	if err != nil {
		return "", err
	}
	content, err := rd.codec.stream(io.LimitReader(opened, firstBlock))
	if err != nil {
		return "", err
	}
	defer func() { _ = content.Close() }() // the rest is not needed
	return message.Excerpt(content, rd.opts.KeepText), nil
}

// Indexed deletes the kept texts of ended messages, because the search index has them.
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
	return redisError(pipe.Exec(ctx), "delete texts that are indexed")
}
