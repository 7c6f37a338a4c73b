package suppression

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/postroom/postroom/redisdb"
)

// The layout, fixed for good: see the package comment.
const (
	shards    = 16      // key prefixes, as those of partitions 0 to 15
	buckets   = 1 << 14 // hashes in each
	groupSize = 16      // buckets that share a bit of the indexes
	groups    = buckets / groupSize
	maxField  = 64 // bytes of a field in a listpack: hash-max-listpack-value
)

// place is where an address or a domain stands, in all scopes.
type place struct {
	subject string // the address, or "@" and the domain
	shard   int
	bucket  int
}

func placeOf(subject string) place {
	n := redisdb.PartitionFor(subject, shards*buckets)
	return place{subject: subject, shard: n % shards, bucket: n / shards}
}

func (p place) key() string { return bucketKey(p.shard, p.bucket) }

// subject is whom an entry is about.
func (e *Entry) subject() string {
	if e.Domain != "" {
		return "@" + e.Domain
	}
	return e.Address
}

// domainOf is the subject that stands for all addresses of a domain.
func domainOf(address string) string { return address[max(0, strings.LastIndexByte(address, '@')):] }

// instance is the scope of an entry that holds everywhere.
const instance = "i"

// any stands for all scopes in counts and indexes.
const anyScope = "*"

// scopeOf writes a scope as it stands in keys: i, a:<account> or l:<list>.
func scopeOf(account, list string) string {
	switch {
	case list != "":
		return "l:" + list
	case account != "":
		return "a:" + account
	}
	return instance
}

// parseScope is the opposite of scopeOf.
func parseScope(scope string) (account, list string) {
	if id, ok := strings.CutPrefix(scope, "l:"); ok {
		return "", id
	}
	id, _ := strings.CutPrefix(scope, "a:")
	if id == scope {
		return "", ""
	}
	return id, ""
}

// fieldName is the name of an entry within its bucket: the scope, unless it is the instance's, and the subject, which has no blank.
func fieldName(scope, subject string) string {
	if scope == instance {
		return subject
	}
	return scope + " " + subject
}

// parseName is the opposite of fieldName.
func parseName(name string) (scope, subject string) {
	if at := strings.LastIndexByte(name, ' '); at >= 0 {
		return name[:at], name[at+1:]
	}
	return instance, name
}

// fieldOf is the field of a name, which is its digest where the name is long, and the name to keep beside it then.
func fieldOf(name string) (field, long string) {
	if len(name) <= maxField {
		return name, ""
	}
	sum := sha256.Sum256([]byte(name))
	return "#" + base64.RawURLEncoding.EncodeToString(sum[:18]), name
}

// isDigest tells a digest from a name: a name with # at its front has an @ too.
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
func softKey(shard int, field string) string {
	return redisdb.Key(shard, "suppression", "soft", field)
}
