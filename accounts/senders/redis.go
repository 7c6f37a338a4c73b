package senders

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"time"

	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed *.lua
var lua embed.FS

var askScript = redisdb.NewScript[askArgs, askAnswer]("senders/ask", redisdb.Source(lua, "ask.lua"))

type askArgs struct {
	Mail                   string
	Now                    time.Time
	Day, Again             int64 // ms
	PerAddress, PerAccount int
}

type askAnswer struct {
	Word  string
	Asked time.Time
	Free  time.Time
}

func addressKey(address string) string { return redisdb.Key(0, "senders", "address", hashOf(address)) }
func accountKey(account string) string { return redisdb.Key(0, "senders", "account", account) }

// hashOf keeps addresses out of the names of keys.
func hashOf(address string) string {
	sum := sha256.Sum256([]byte(address))
	return hex.EncodeToString(sum[:16])
}
