package outbox

import (
	"strconv"

	"github.com/postroom/postroom/redisdb"
)

// lookEvery is how many bytes this process puts into Redis before accept.lua checks the memory again. The
// share that Admits knows is a few seconds old, and a hundred clients with 20 MB each fill the last quarter
// of the memory in one second.
const lookEvery = 1 << 20

// overhead is about what a message takes in Redis beside its content, in bytes.
const overhead = 2 << 10

// countBytes counts the bytes of a message on its way to Redis. It returns the share of the memory that
// accept.lua checks, or "" if it need not check.
func (s *store) countBytes(size int) string {
	if s.unseen.Add(int64(size+overhead)) < lookEvery || s.DB.Mode() == redisdb.Memory {
		return ""
	}
	return strconv.FormatFloat(s.opts.MaxMemoryShare, 'f', -1, 64)
}

// checked notes that accept.lua has checked the memory. Until then it checks for every message.
func (s *store) checked() { s.unseen.Store(0) }
