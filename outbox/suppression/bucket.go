package suppression

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/redisdb"
)

// The layout is fixed: see the package comment.
const (
	shards    = 16      // key prefixes, like partitions 0 to 15
	buckets   = 1 << 14 // hashes in each
	groupSize = 16      // buckets that share a bit of the indexes
	groups    = buckets / groupSize
	maxField  = 64 // bytes of a field in a listpack: hash-max-listpack-value
)

// bucket locates an address or a domain, in all scopes.
type bucket struct {
	subject string // the address, or "@" and the domain
	shard   int
	number  int
}

func bucketOf(subject string) bucket {
	n := redisdb.PartitionFor(subject, shards*buckets)
	return bucket{subject: subject, shard: n % shards, number: n / shards}
}

func (b bucket) key() string { return bucketKey(b.shard, b.number) }

// subject returns the address, or "@" and the domain, of an entry.
func (e *Entry) subject() string {
	if e.Domain != "" {
		return "@" + e.Domain
	}
	return e.Address
}

// domainOf returns the subject that stands for all addresses of a domain.
func domainOf(address string) string { return address[max(0, strings.LastIndexByte(address, '@')):] }

// instance is the scope of an entry that holds for the whole instance.
const instance = "i"

// any stands for all scopes in counts and indexes.
const anyScope = "*"

// scopeOf returns a scope as it is written in keys: i, a:<account> or l:<list>:<account>. No id of a list has
// a colon.
func scopeOf(account, list string) string {
	switch {
	case list != "":
		return "l:" + list + ":" + account
	case account != "":
		return "a:" + account
	}
	return instance
}

// parseScope is the inverse of scopeOf.
func parseScope(scope string) (account, list string) {
	if id, ok := strings.CutPrefix(scope, "l:"); ok {
		list, account, _ = strings.Cut(id, ":")
		return account, list
	}
	account, _ = strings.CutPrefix(scope, "a:")
	if account == scope {
		return "", ""
	}
	return account, ""
}

// fieldName returns the name of an entry within its bucket: the scope, unless it is the instance's, and the
// subject, which has no blank.
func fieldName(scope, subject string) string {
	if scope == instance {
		return subject
	}
	return scope + " " + subject
}

// parseName is the inverse of fieldName.
func parseName(name string) (scope, subject string) {
	if at := strings.LastIndexByte(name, ' '); at >= 0 {
		return name[:at], name[at+1:]
	}
	return instance, name
}

// fieldOf returns the field of a name. If the name is long the field is its digest, and long is the name to
// store beside it.
func fieldOf(name string) (field, long string) {
	if len(name) <= maxField {
		return name, ""
	}
	sum := sha256.Sum256([]byte(name))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:18]), name
}

// isDigest reports whether a field is a digest. A name that begins with # contains an @ too.
func isDigest(field string) bool {
	return strings.HasPrefix(field, "#") && !strings.Contains(field, "@")
}

func countsKey(shard int) string { return redisdb.Key(shard, "suppression", "counts") }
func bucketKey(shard, bucket int) string {
	return redisdb.Key(shard, "suppression", "bucket", strconv.Itoa(bucket))
}
func evidenceKey(shard, bucket int) string {
	return redisdb.Key(shard, "suppression", "evidence", strconv.Itoa(bucket))
}
func indexKey(shard int, r Reason, scope string) string {
	return redisdb.Key(shard, "suppression", "index", r.letter(), scope)
}
func expiringKey(shard int) string { return redisdb.Key(shard, "suppression", "expiring") }
func saidKey(shard int, r Reason, field string) string {
	return redisdb.Key(shard, "suppression", "said", r.letter(), field)
}
func softKey(shard int, field string) string {
	return redisdb.Key(shard, "suppression", "soft", field)
}

//go:embed lua/*.lua
var lua embed.FS

var (
	prelude = redisdb.Source(lua, "lua/prelude.lua")

	addScript = redisdb.NewScript[addArgs, int]("suppression/add", redisdb.Source(lua, "lua/add.lua"),
		prelude, LookLua)
	removeScript = redisdb.NewScript[removeArgs, int]("suppression/remove",
		redisdb.Source(lua, "lua/remove.lua"), prelude)
	eraseScript = redisdb.NewScript[eraseArgs, int]("suppression/erase", redisdb.Source(lua, "lua/erase.lua"),
		LookLua)
	sweepScript = redisdb.NewScript[sweepArgs, int]("suppression/sweep", redisdb.Source(lua, "lua/sweep.lua"),
		prelude)
	// softScript counts messages, also for Confirmed
	softScript = redisdb.NewScript[softArgs, int]("suppression/soft", redisdb.Source(lua, "lua/soft.lua"))
)

type addArgs struct {
	Now     string
	Entries []any // nine of each entry, which add.lua names
}

type removeArgs struct {
	Bucket int
	Field  string
	Scope  string
	Letter string
	Now    string
}

type eraseArgs struct {
	Field string
	Now   string
}

type sweepArgs struct {
	Group int
	Now   string
}

type softArgs struct {
	Now     string
	Since   string
	Tag     string
	Enough  int
	KeepFor int // seconds
}
