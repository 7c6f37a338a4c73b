package suppression

import (
	_ "embed"

	"github.com/postroom/postroom/redisdb"
)

// LookLua is Lua text to put before a script of another package that asks a [Look] itself: the function unstopped(at, from, fields), which
// says whether nobody is stopped.
//
//go:embed lua/look.lua
var LookLua string

// mostLooked is how many recipients a [Look] is for at most, so that a script has few keys.
const mostLooked = 10

// Look is a [Question] put so that a script can ask it: whether there is any entry at all that might stop one of the recipients. Whether
// one does, [Store.Check] knows.
type Look struct {
	Keys   []string // of the version, then of the hashes to look at
	Fields []any    // of each hash in turn
	Each   int      // how many of them each hash has
}

// Look puts a question so that a script can ask it. It is nil where none can: in a Cluster (see [redisdb.DB.Together]), and for more than 10
// addresses.
func (s *Store) Look(q Question) *Look {
	if !s.db.Together() || len(q.Addresses) > mostLooked {
		return nil
	}
	all := newLook(q)
	l := &Look{Keys: append(make([]string, 0, 1+2*len(q.Addresses)), versionKey()), Each: len(all.scopes)}
	all.each(func(subject string, fields []string) {
		l.Keys = append(l.Keys, placeOf(subject).key())
		for _, field := range fields {
			l.Fields = append(l.Fields, field)
		}
	})
	return l
}

// VersionKey is the key of the version that is raised with every entry that is added. Where it is as it was when a [Look] found nothing, there is still
// nothing. It is empty where there is none, as in a Cluster.
func (s *Store) VersionKey() string {
	if !s.db.Together() {
		return ""
	}
	return versionKey()
}

func versionKey() string { return redisdb.Key(0, "suppression", "version") }
