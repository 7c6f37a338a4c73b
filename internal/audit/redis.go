package audit

import (
	"context"
	"embed"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

// Stream is the kind of the key of the stream of entries, and FieldText the field of an entry's text.
const (
	Stream    = "audit"
	FieldText = "e"
)

//go:embed *.lua
var lua embed.FS

var (
	appendScript = redisdb.NewScript[appendArgs, appended]("audit/append", redisdb.Source(lua, "append.lua"))
	trimScript   = redisdb.NewScript[trimArgs, int]("audit/trim", redisdb.Source(lua, "trim.lua"))
)

type appendArgs struct {
	Expected string
	ID       string
	Seq      int64
	Text     []byte
	Hash     string
	Key      string
	MAC      string `lua:"mac"`
	Ends     string
	Once     bool
}

type appended struct {
	Word     string
	Length   int
	HeadID   string
	HeadSeq  int64
	HeadHash string
}

type trimArgs struct {
	ID   string
	Seq  int64
	Hash string
	Key  string
	MAC  string `lua:"mac"`
}

func streamKey() string     { return redisdb.Key(0, Stream) }
func headKey() string       { return redisdb.Key(0, Stream, "head") }
func intentsKey() string    { return redisdb.Key(0, Stream, "intents") }
func checkpointKey() string { return redisdb.Key(0, Stream, "checkpoint") }

// store reads and writes the log.
type store struct{ client redis.UniversalClient }

func (s store) append(ctx context.Context, a appendArgs) (appended, error) {
	return appendScript.Run(ctx, s.client, []string{streamKey(), headKey(), intentsKey()}, a)
}

func (s store) trim(ctx context.Context, a trimArgs) (int, error) {
	return trimScript.Run(ctx, s.client, []string{streamKey(), checkpointKey()}, a)
}

// anchor is the checkpoint or the head of the chain.
type anchor struct {
	api.AuditHead
	key, mac string // a checkpoint's
}

// anchor reads an anchor; the zero value if there is none.
func (s store) anchor(ctx context.Context, key string) (anchor, error) {
	got, err := s.client.HGetAll(ctx, key).Result()
	seq, _ := strconv.ParseInt(got["seq"], 10, 64)
	return anchor{api.AuditHead{Seq: seq, ID: got["id"], Hash: got["hash"]}, got["key"], got["mac"]}, err
}

// sealed is an entry as it is stored.
type sealed struct {
	id              string // in the stream
	text            string
	hash, key, code string // code is the MAC
}

func read(messages []redis.XMessage, err error) ([]sealed, error) {
	all := make([]sealed, len(messages))
	for i, m := range messages {
		text := func(field string) string { s, _ := m.Values[field].(string); return s }
		all[i] = sealed{id: m.ID, text: text(FieldText), hash: text("h"), key: text("k"), code: text("m")}
	}
	return all, err
}

// after returns entries from a position on, the oldest first; before, from it back, the newest first.
func (s store) after(ctx context.Context, from string, n int) ([]sealed, error) {
	return read(s.client.XRangeN(ctx, streamKey(), from, "+", int64(n)).Result())
}

func (s store) before(ctx context.Context, from string, n int) ([]sealed, error) {
	return read(s.client.XRevRangeN(ctx, streamKey(), from, "-", int64(n)).Result())
}

// lastID returns the position of the newest entry that was ever in the stream.
func (s store) lastID(ctx context.Context) (string, error) {
	info, err := s.client.XInfoStream(ctx, streamKey()).Result()
	if err != nil {
		return "", err
	}
	return info.LastGeneratedID, nil
}
