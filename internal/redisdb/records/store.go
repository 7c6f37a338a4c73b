package records

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// tries bounds the attempts at a change while other changes come first.
const tries = 5

// Kind describes the records of a store.
type Kind[V any] struct {
	Key   string // a record is stored at <Key>:<id>; secrets are bound to this name, so it must not change
	Index string // key of the list of ids; <Index>:version counts changes
	Name  string // a record's name in messages, such as "account"
	Code  string // for the Conflict when other changes always come first, such as "AccountChanged"
	// Missing returns the NotFound error about a record that does not exist.
	Missing func(id string) error
	// Changed is Lua text that updates the state of a changed record (the hash KEYS[4]). If empty, there are no
	// states.
	Changed string
	// Secrets returns the secrets of a value, by pointer. First it gives the value its own copy of everything
	// behind a pointer that holds one.
	Secrets func(v *V) []Secret
}

// Record is a value with its id, times and state.
type Record[V any] struct {
	ID      string            `json:"-"`
	Value   V                 `json:"value"`
	Created time.Time         `json:"created"`
	Updated time.Time         `json:"updated"`
	State   map[string]string `json:"-"` // written by scripts of the kind's package
	Broken  error             `json:"-"` // of [Store.Open]: why its secrets don't open; they are masked then

	revision string // empty if not stored
}

// Stored reports whether the record is in Redis, and not the stand-in.
func (r *Record[V]) Stored() bool { return r.revision != "" }

// Options are the optional parts of a store.
type Options[V any] struct {
	// StandIn is a record that exists without being stored, such as one from the configuration. Its secrets are
	// in clear. A stored record of the same id takes its place. Nil if there is none.
	StandIn *Record[V]
	// Forget is called after this process has changed or deleted a record. Nil means no call.
	Forget func(id string)
	// InUse returns an error if something needs a record that a caller wants to delete. If InUse is nil, nothing
	// ever does.
	InUse InUse
	// Now is the clock, for tests. Defaults to time.Now.
	Now func() time.Time
}

// InUse returns a Conflict if something needs a record of a kind.
type InUse func(ctx context.Context, kind, id string) error

// Store stores the records of one kind. It is safe for concurrent use, by any number of processes on one
// Redis. A record whose id has a colon does not exist.
type Store[V any] struct {
	client  redis.UniversalClient
	ring    *seal.Ring
	kind    Kind[V]
	put     *redisdb.Script[putArgs, bool]
	standIn *Record[V] // its secrets are sealed
	forget  func(id string)
	inUse   InUse
	now     func() time.Time
}

// New returns a store on an open database. It does no I/O.
func New[V any](db *redisdb.DB, ring *seal.Ring, kind Kind[V], o Options[V]) *Store[V] {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Forget == nil {
		o.Forget = func(string) {}
	}
	if o.InUse == nil {
		o.InUse = func(context.Context, string, string) error { return nil }
	}
	s := &Store[V]{client: db.Client(), ring: ring, kind: kind, put: putScript(kind.Key, kind.Changed),
		forget: o.Forget, inUse: o.InUse, now: o.Now}
	if o.StandIn != nil {
		r := *o.StandIn
		r.Created, r.Updated = s.time(), s.time()
		for _, secret := range kind.Secrets(&r.Value) {
			secret.seal(ring, s.place(r.ID))
		}
		s.standIn = &r
	}
	return s
}

// Change replaces a record by the result of edit, and reports whether there was one. edit gets the record
// with its secrets masked, or nil if there is none. Secrets that stay masked are kept; if one can't be kept,
// the error is Invalid and names the fields. If another change comes first, edit is called again; after five
// times the error is a Conflict.
func (s *Store[V]) Change(ctx context.Context, id string, edit func(old *Record[V]) (V, error)) (existed bool,
	err error) {
	for range tries {
		old, err := s.loadOne(ctx, id, false)
		if err != nil {
			return false, err
		}
		next, err := s.edited(id, old, edit)
		if err != nil {
			return false, err
		}
		done, err := s.write(ctx, next, old, false)
		if done {
			s.forget(id)
		}
		if err != nil || done {
			return old != nil, err
		}
	}
	return false, s.contended(id)
}

// Create is Change. It returns "existing" if there was a record, else "new".
func (s *Store[V]) Create(ctx context.Context, id string, edit func(old *Record[V]) (V, error)) (string,
	error) {
	existed, err := s.Change(ctx, id, edit)
	if existed {
		return "existing", err
	}
	return "new", err
}

// Update is Change for a record that exists: edit never gets nil. It returns NotFound for others.
func (s *Store[V]) Update(ctx context.Context, id string, edit func(old *Record[V]) (V, error)) error {
	_, err := s.Change(ctx, id, func(old *Record[V]) (V, error) {
		if old == nil {
			return *new(V), s.kind.Missing(id)
		}
		return edit(old)
	})
	return err
}

// edited returns the record that replaces old (nil: none).
func (s *Store[V]) edited(id string, old *Record[V], edit func(old *Record[V]) (V, error)) (*Record[V],
	error) {
	next := &Record[V]{ID: id, Created: s.time(), Updated: s.time(), revision: rand.Text()}
	var shown *Record[V]
	var before []Secret
	if old != nil {
		shown = s.masked(old)
		kept := *old
		next.Created, before = old.Created, s.kind.Secrets(&kept.Value)
	}
	value, err := edit(shown)
	if err != nil {
		return nil, err
	}
	next.Value = value
	wrong := keep(s.kind.Secrets(&next.Value), before, s.ring, s.place(id))
	return next, fault.InvalidFields(wrong)
}

// Key returns the key of a record.
func (s *Store[V]) Key(id string) string { return redisdb.Key(0, s.kind.Key, id) }

// StateKey returns the key of a record's state.
func (s *Store[V]) StateKey(id string) string { return redisdb.Key(0, s.kind.Key, id, "state") }

// VersionKey returns the key of the version, for [redisdb.NewCache].
func (s *Store[V]) VersionKey() string { return redisdb.Key(0, s.kind.Index, "version") }

func (s *Store[V]) indexKey() string { return redisdb.Key(0, s.kind.Index) }

// place returns the name that a record's sealed secrets are bound to, together with their field's.
func (s *Store[V]) place(id string) string { return s.kind.Key + ":" + id }

func (s *Store[V]) time() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// contended returns the error if other changes came first each time.
func (s *Store[V]) contended(id string) error {
	return fault.New(fault.Conflict, s.kind.Code, "The %s %s is being changed by others; try again", s.kind.Name,
		id)
}
