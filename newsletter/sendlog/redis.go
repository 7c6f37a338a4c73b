package sendlog

import (
	"embed"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua/*.lua
var lua embed.FS

var (
	prelude       = redisdb.Source(lua, "lua/prelude.lua")
	claimScript   = script[claimArgs, claimed]("claim")
	writeScript   = script[writeArgs, written]("write")
	closeScript   = script[closeArgs, word]("close")
	expireScript  = script[expireArgs, expired]("expire_leases")
	renewScript   = script[renewArgs, word]("renew")
	permitScript  = script[permitArgs, word]("permit")
	noteScript    = script[[]any, noted]("note")
	recountScript = script[[]Bit, recounted]("recount")
	forgetScript  = script[forgetArgs, word]("forget")
)

func script[A, R any](name string) *redisdb.Script[A, R] {
	return redisdb.NewScript[A, R]("sendlog/"+name, redisdb.Source(lua, "lua/"+name+".lua"), prelude)
}

// The arguments and answers of the scripts, by the names that the scripts declare.
type (
	claimArgs struct {
		Version  int `lua:",omitzero"`
		From, To int
		Last     bool
		Again    time.Time `lua:",omitzero"`
		Most     int
		Lease    int64 // milliseconds
		Groups   string
		Offsets  []int
	}
	claimed struct {
		Word, Batch, Permission, Taken string
		At                             int
	}
	writeArgs struct {
		Keep, Groups int
		People       []string
	}
	written   struct{ Word, Words, Leases, Version string }
	closeArgs struct {
		Batch   string
		Tallies []any
	}
	expireArgs struct{ Doubt int }
	expired    struct {
		Word         string
		Back, Doubts int
	}
	renewArgs struct {
		Lease   int64 // milliseconds
		Batches []string
	}
	permitArgs struct {
		Version int
		Allow   bool
	}
	noted      struct{ Word, Fresh string }
	forgetArgs struct {
		Offset int
		Bits   []any
	}
	recounted struct {
		Word    string
		Changed int
	}
	word struct{ Word string }
)

// shards is the number of key prefixes that chunks are spread over.
const shards = 16

func logKey(r Run, chunk int) string {
	return redisdb.Key(chunk%shards, "sendlog", r.String(), strconv.Itoa(chunk))
}

func permissionKey(r Run, shard int) string { return redisdb.Key(shard, "send-allowed", r.String()) }

// letters are states or groups as the scripts take them: a to p.
func letters[T State | Group](all ...T) string {
	var b strings.Builder
	for _, one := range all {
		b.WriteByte(byte('a' + one))
	}
	return b.String()
}

// numbers reads numbers that a script wrote.
func numbers(texts []string) []int {
	list := make([]int, len(texts))
	for i, text := range texts {
		list[i], _ = strconv.Atoi(text)
	}
	return list
}
