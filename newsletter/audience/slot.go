package audience

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/postroom/postroom/internal/redisdb"
)

// The layout is fixed: see the package comment.
const (
	shards     = 16      // key prefixes, like partitions 0 to 15
	buckets    = 1 << 14 // hashes of the index in each
	pageSize   = 32      // records of a page
	chunkPages = 2000
	chunkSize  = chunkPages * pageSize // ordinals of a chunk
	maxField   = 64                    // bytes of a field in a listpack: hash-max-listpack-value
)

// slot is where the record of an ordinal is.
type slot struct {
	page  uint32
	index int // in the page
	chunk int
}

func slotOf(ordinal uint32) slot {
	return slot{page: ordinal / pageSize, index: int(ordinal % pageSize), chunk: int(ordinal / chunkSize)}
}

// shardOf returns the key prefix of a chunk.
func shardOf(chunk int) int { return chunk % shards }

func pageKey(account string, page uint32) string {
	return redisdb.Key(shardOf(int(page/chunkPages)), "subscriber-page", account, decimal(page))
}

// totalsKey is the hash that counts the subscribers of an account in the chunks of a shard.
func totalsKey(account string, shard int) string {
	return redisdb.Key(shard, "subscriber-totals", account)
}

// ordinalsKey is the hash that counts the ordinals that each account has given away.
func ordinalsKey() string { return redisdb.Key(0, "subscriber-ordinals") }

// A list's keys have its number, which no other list ever gets. So writes during its deletion belong to no
// later list with the same id.
func statesKey(list uint32, chunk int) string {
	return redisdb.Key(shardOf(chunk), "list-states", decimal(list), strconv.Itoa(chunk))
}
func countsKey(list uint32, shard int) string {
	return redisdb.Key(shard, "list-counts", decimal(list))
}
func pendingKey(list uint32, shard int) string {
	return redisdb.Key(shard, "list-pending", decimal(list))
}

// decimal writes a number as it is in keys and fields.
func decimal(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

// indexEntry is the hash and the field of an address in the index.
type indexEntry struct {
	key, field string
	shard      int // the key's
}

// indexed returns where a folded address is in the index.
func indexed(account, address string) indexEntry {
	field := account + " " + address
	n := redisdb.PartitionFor(field, shards*buckets)
	if len(field) > maxField {
		sum := sha256.Sum256([]byte(field))
		field = "#" + base64.RawURLEncoding.EncodeToString(sum[:18])
	}
	return indexEntry{key: redisdb.Key(n%shards, "subscriber-index", strconv.Itoa(n/shards)), field: field,
		shard: n % shards}
}

// idOf returns the id of the subscriber with an ordinal.
func idOf(ordinal uint32) string { return "s" + strconv.FormatUint(uint64(ordinal), 36) }

// ordinalOf is the inverse of idOf.
func ordinalOf(id string) (uint32, bool) {
	if len(id) < 2 || id[0] != 's' {
		return 0, false
	}
	n, err := strconv.ParseUint(id[1:], 36, 32)
	if err != nil || idOf(uint32(n)) != id {
		return 0, false
	}
	return uint32(n), true
}
