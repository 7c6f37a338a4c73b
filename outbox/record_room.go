package outbox

import (
	"strconv"

	"github.com/postroom/postroom/redisdb"
)

// lookEvery is how many bytes this process puts into Redis before it has Redis look at its memory as it takes the next message. What is
// known of the memory otherwise is a few seconds old, and a hundred clients with 20 MB each fill the last quarter of it in one second.
const lookEvery = 1 << 20

// beside is about what a message takes in Redis beside its content.
const beside = 2 << 10

// heed counts the bytes of a message on its way to Redis. It answers the share of the memory that accept.lua is to hold the message to, or
// nothing where it need not look.
func (s *store) heed(size int) string {
	if s.unseen.Add(int64(size+beside)) < lookEvery || s.DB.Mode() == redisdb.Memory {
		return ""
	}
	return strconv.FormatFloat(s.opts.MaxMemoryShare, 'f', -1, 64)
}

// seen notes that accept.lua has looked and found room. Until it has, it looks for every message.
func (s *store) seen() { s.unseen.Store(0) }
