package suppression

import (
	_ "embed"
	"slices"

	"github.com/postroom/postroom/internal/redisdb"
)

// LookLua is Lua text to put before a script of another package that evaluates a [Look]: the function
// unstopped(at, from, fields), which reports whether no recipient is stopped.
//
//go:embed lua/look.lua
var LookLua string

// mostLooked bounds the recipients of a [Look], so that a script has few keys.
const mostLooked = 10

// Look is a [Question] for a script: whether there is any entry at all that might stop one of the recipients.
// Whether the entry does stop one, [Store.Check] decides.
type Look struct {
	Keys   []string // of the version, then of the hashes to look at
	Fields []string // of each hash in turn
	Each   int      // number of fields of each hash
}

// Look returns a question for a script. It returns nil where a script cannot check: in a Cluster (see
// [redisdb.DB.Together]), and for more than 10 addresses.
func (s *Store) Look(q Question) *Look {
	if !s.db.Together() || len(q.Addresses) > mostLooked {
		return nil
	}
	key := s.cached()
	all := newLook(q, key)
	l := &Look{Keys: append(make([]string, 0, 2+3*len(q.Addresses)), versionKey()), Each: len(all.scopes)}
	if key == nil && s.ring != nil { // somebody was erased: Check finds out whom
		l.Keys = append(l.Keys, erasedKeyKey())
		l.Fields = append(l.Fields, slices.Repeat([]string{keyField}, l.Each)...)
	}
	all.each(func(_, key string, fields []string) {
		l.Keys = append(l.Keys, key)
		l.Fields = append(l.Fields, fields...)
	})
	return l
}

// VersionKey returns the key of a version that every script that adds entries raises. While the version is
// the same as when a [Look] found nothing, there is still nothing. The key is empty in a Cluster.
func (s *Store) VersionKey() string {
	if !s.db.Together() {
		return ""
	}
	return versionKey()
}

func versionKey() string { return redisdb.Key(0, "suppression", "version") }
