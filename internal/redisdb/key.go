package redisdb

import (
	"strconv"
	"strings"
)

// Key names a Redis key: Key(0, "message", id) is "postroom:{0}:message:<id>". All keys of one partition
// share a Cluster slot.
func Key(partition int, parts ...string) string {
	var digits [20]byte
	number := strconv.AppendInt(digits[:0], int64(partition), 10)
	size := len("postroom:{}") + len(number)
	for _, p := range parts {
		size += 1 + len(p)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteString("postroom:{")
	b.Write(number)
	b.WriteByte('}')
	for _, p := range parts {
		b.WriteByte(':')
		b.WriteString(p)
	}
	return b.String()
}

// PartitionFor returns the partition of a key by hash (FNV-1a, mixed). It is stable for the same key and
// number of partitions in every version of Postroom, because idempotency keys are found by it. For fewer
// than two partitions it is 0.
func PartitionFor(key string, partitions int) int {
	if partitions < 2 {
		return 0
	}
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	h ^= h >> 32 // the low bits of FNV alone are poorly mixed
	return int(h % uint64(partitions))
}
