package suppression

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// Question is a message to be checked.
type Question struct {
	Account   string   // its account; if empty, only the instance's entries count
	List      string   // id of the account's list that it belongs to, if any
	Bulk      bool     // every unsubscribe stops bulk mail, and mail of a list
	Addresses []string // its recipients'
}

// Check returns the entry that stops mail to each address, or nil. If several do, it returns the strongest
// reason. Among equal reasons, the list precedes the account and the instance, and the address precedes its
// domain. It costs one round trip. The entries have no evidence, see [Store.Find]. If Redis is unreachable,
// the error is fault.Unavailable.
func (s *Store) Check(ctx context.Context, q Question) ([]*Entry, error) {
	if len(q.Addresses) == 0 {
		return nil, nil
	}
	look, err := asked(ctx, s, q)
	if err != nil {
		return nil, err
	}
	now := s.now().Unix()
	found := make([]*Entry, len(q.Addresses))
	for i, subject := range look.subjects {
		found[i] = look.strongest(i, subject, domainOf(subject), now)
		s.metrics.checked(found[i])
	}
	return found, nil
}

// asked reads what concerns a question. If this process does not have the key of digests, it learns in the
// same round trip whether there is one, and then asks again.
func asked(ctx context.Context, s *Store, q Question) (*look, error) {
	look := newLook(q, s.cached())
	pipe := s.db.Client().Pipeline()
	look.ask(ctx, pipe)
	var first *redis.StringCmd
	if s.ring != nil && s.cached() == nil {
		first = pipe.HGet(ctx, erasedKeyKey(), keyField)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, redisdb.Failed(err, "suppression: check recipients")
	}
	if first == nil || first.Val() == "" {
		return look, nil
	}
	if _, err := s.open(first.Val()); err != nil {
		return nil, err
	}
	return asked(ctx, s, q)
}

// look is the state of one Check.
type look struct {
	q        Question
	scopes   []string // narrowest first
	subjects []string // the addresses, folded
	// each address in the forms in which entries may have it, and their digests; empty if no one can be erased
	forms, digests [][]string
	answers        map[string]*redis.SliceCmd
}

// newLook returns the look of a question. key is the digests' key, or nil.
func newLook(q Question, key []byte) *look {
	l := &look{q: q, subjects: make([]string, len(q.Addresses)), forms: make([][]string, len(q.Addresses)),
		digests: make([][]string, len(q.Addresses)), answers: make(map[string]*redis.SliceCmd, 3*len(q.Addresses))}
	if q.Account != "" && q.List != "" {
		l.scopes = append(l.scopes, scopeOf(q.Account, strings.ToLower(q.List)))
	}
	if q.Account != "" {
		l.scopes = append(l.scopes, scopeOf(q.Account, ""))
	}
	l.scopes = append(l.scopes, instance)
	for i, address := range q.Addresses {
		l.subjects[i] = foldAddress(address)
		l.forms[i] = message.AddressForms(l.subjects[i])
		for _, form := range l.forms[i] {
			l.digests[i] = append(l.digests[i], digestOf(key, form))
		}
	}
	return l
}

// ask reads all scopes of all addresses, their digests and their domains.
func (l *look) ask(ctx context.Context, pipe redis.Pipeliner) {
	l.each(func(subject, key string, fields []string) {
		l.answers[subject] = pipe.HMGet(ctx, key, fields...)
	})
}

// each calls do once for every address, digest and domain, with their hash and their fields in all scopes.
func (l *look) each(do func(subject, key string, fields []string)) {
	seen := make(map[string]bool, 3*len(l.subjects))
	for n, address := range l.subjects {
		for _, digest := range l.digests[n] {
			if digest == "" || seen[digest] {
				continue
			}
			seen[digest] = true
			fields := make([]string, len(l.scopes))
			for i, scope := range l.scopes {
				fields[i] = erasedField(scope, digest)
			}
			do(digest, erasedKey(digest), fields)
		}
		for _, subject := range append(slices.Clone(l.forms[n]), domainOf(address)) {
			if seen[subject] {
				continue
			}
			seen[subject] = true
			fields := make([]string, len(l.scopes))
			for i, scope := range l.scopes {
				fields[i], _ = fieldOf(fieldName(scope, subject))
			}
			do(subject, bucketOf(subject).key(), fields)
		}
	}
}

// strongest returns the strongest entry of the address n and its domain.
func (l *look) strongest(n int, address, domain string, now int64) *Entry {
	if address == message.Erased {
		return &Entry{Reason: Erased, Address: address, Source: "erasure"}
	}
	for i, scope := range l.scopes {
		for _, digest := range l.digests[n] {
			if digest == "" {
				continue
			}
			if since, ok := l.answers[digest].Val()[i].(string); ok {
				e := erasedEntry(scope, address, since)
				return &e
			}
		}
	}
	var best record
	var scope, subject string
	strength := -1
	for i := range l.scopes {
		for _, candidate := range append(slices.Clone(l.forms[n]), domain) {
			value, ok := l.answers[candidate].Val()[i].(string)
			if !ok {
				continue
			}
			for _, r := range records(value) {
				if r.reason.strength() > strength && r.inForce(now) && l.stops(r.reason) {
					best, scope, subject, strength = r, l.scopes[i], candidate, r.reason.strength()
				}
			}
		}
	}
	if strength < 0 {
		return nil
	}
	e := best.entry(scope, subject)
	return &e
}

// stops implements the lane rule: an unsubscribe stops bulk mail, and mail of a list. Whoever unsubscribed
// from all of an account has unsubscribed from each of its lists.
func (l *look) stops(r Reason) bool { return r != Unsubscribe || l.q.Bulk || l.q.List != "" }

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
	Keys   []string // the version, then the hashes to look at
	Fields []string // fields in each hash, in turn
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
	if key == nil && s.ring != nil { // somebody was erased: Check finds out who
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
