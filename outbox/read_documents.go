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
	TextKnown bool   // whether Postroom still has its text
}

// textShort is more than the size of any text that is kept.
const textShort = 1 << 20

// Packed contents of at most wholeText bytes are read together; Redis has all of them in its buffers at the
// same time. A larger content's beginning is read separately. It has the size of zstd's first block (RFC 8878
// section 3.1.1.2.4), because a part of a block can't be unpacked. If it is sealed, that is its first chunk,
// and one byte more shows that it is not the last.
const (
	wholeText  = 4 << 10
	firstBlock = seal.BoxChunk
	firstPiece = seal.BoxHead + firstBlock + seal.BoxTag + 1
)

// documentsAtOnce is how many messages are read together: one command has the records of all of a partition.
const documentsAtOnce = 500

// Documents reads messages, live or in the log; others are left out. The text of a live message is read from
// its content. The text of an ended message is kept until Indexed.
func (rd *Reader) Documents(ctx context.Context, ids []string) (all []Document, _ error) {
	known := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, ok := partitionOf(id, rd.DB.Partitions())
		return !ok
	})
	for some := range slices.Chunk(known, documentsAtOnce) {
		docs, err := rd.documents(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, docs...)
	}
	return all, nil
}

func (rd *Reader) documents(ctx context.Context, ids []string) ([]Document, error) {
	rows, err := rd.readLog(ctx, entriesOf(ids))
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

// addTexts reads the texts of messages in one round trip. It takes one more for short mail that ended, unless
// it is large or has shared content that this process has not cached.
func (rd *Reader) addTexts(ctx context.Context, rows []row, docs []Document) error {
	if rd.opts.KeepText == 0 {
		return nil
	}
	found, err := rd.packedTexts(ctx, rows)
	if err != nil {
		return redisError(err, "read texts for the search index")
	}
	for i, r := range rows {
		packed := found[r.id]
		if packed == "" || packed == keptContent { // it has ended since, or its text was not kept
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

// packedTexts reads the texts of messages, by id: the content of a live message; the kept text of an ended
// one, or keptContent followed by its content.
func (rd *Reader) packedTexts(ctx context.Context, rows []row) (map[string]string, error) {
	pipe, found := rd.DB.Client().Pipeline(), map[string]string{}
	live, ended := map[string]*redis.StringCmd{}, []string(nil)
	for _, r := range rows {
		key := rd.keys.content(r.partition, r.id)
		switch {
		case r.ended != 0:
			ended = append(ended, r.id)
		case r.shared == "":
			live[r.id] = pipe.GetRange(ctx, key, 0, wholeText)
		default:
			live[r.id] = pipe.Get(ctx, key)
		}
	}
	parts, texts := rd.byPartition(ended), map[int]*redis.SliceCmd{}
	for p, ids := range parts {
		texts[p] = pipe.HMGet(ctx, rd.keys.texts(p), ids...)
	}
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	for id, cmd := range live {
		found[id] = cmd.Val()
	}
	var stayed []string
	for id, text := range valuesOf(parts, texts) {
		if found[id] = text; text == keptContent {
			stayed = append(stayed, id)
		}
	}
	pipe = rd.DB.Client().Pipeline()
	contents := rd.getAll(ctx, pipe, stayed, rd.keys.content)
	if err := execRead(ctx, pipe); err != nil {
		return nil, err
	}
	for id, content := range contents() {
		found[id] += content
	}
	return found, nil
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
	pipe := rd.DB.Pipeline()
	for p, of := range rd.byPartition(ids) {
		for some := range slices.Chunk(of, documentsAtOnce) {
			indexedScript.Add(pipe, []string{rd.keys.texts(p)}, some)
		}
	}
	return redisError(pipe.Exec(ctx), "delete texts that are indexed")
}
