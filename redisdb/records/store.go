package records

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/fault"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/seal"
)

// tries is how often a change is tried against others at the same time.
const tries = 5

// Kind is what a store has to know of its records.
type Kind[V any] struct {
	Key   string // of a record, <Key>:<id>; secrets are sealed for this place, so it must not change
	Index string // the key of the list of ids; <Index>:version counts changes
	Name  string // what people call one, such as "account"
	Code  string // of the Conflict when others keep changing a record, such as "AccountChanged"
	// Missing returns the fault of kind NotFound about a record that does not exist.
	Missing func(id string) error
	// Changed is Lua text that brings the state of a record (the hash KEYS[4]) up to date when it was changed.
	// Empty: there are no states.
	Changed string
	// Secrets lists the secrets of a value where they stand, after giving it its own copy of whatever it points
	// to that holds one.
	Secrets func(v *V) []Secret
}

// Record is a value, and what is known of it.
type Record[V any] struct {
	ID      string            `json:"-"`
	Value   V                 `json:"value"`
	Created time.Time         `json:"created"`
	Updated time.Time         `json:"updated"`
	State   map[string]string `json:"-"` // what scripts of its package noted about it
	Broken  error             `json:"-"` // of [Store.Open]: why its secrets, which are masked then, don't open

	revision string // empty: it is not stored
}

// Stored says whether the record is in Redis, and not the one that stands in for it.
func (r *Record[V]) Stored() bool { return r.revision != "" }

// Options are the choices of the package that keeps the records.
type Options[V any] struct {
	// StandIn is a record that exists without being stored, as one from the configuration does, with its secrets
	// in clear. A stored one of its id takes its place. Nil: there is none.
	StandIn *Record[V]
	// Forget is called after this process has changed or deleted a record. Nil: no call.
	Forget func(id string)
	// Now is the clock, for tests. Nil: the machine's.
	Now func() time.Time
}

// Store keeps the records of one kind. It is safe for concurrent use, by any number of processes on one
// Redis. Ids must not have a colon: of one that does it is said that there is none.
type Store[V any] struct {
	client  redis.UniversalClient
	ring    *seal.Ring
	kind    Kind[V]
	put     *redisdb.RawScript
	standIn *Record[V] // its secrets are sealed, like those of the others
	forget  func(id string)
	now     func() time.Time
}

// New makes a store on an open database. It does no I/O.
func New[V any](db *redisdb.DB, ring *seal.Ring, kind Kind[V], o Options[V]) *Store[V] {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Forget == nil {
		o.Forget = func(string) {}
	}
	s := &Store[V]{client: db.Client(), ring: ring, kind: kind, put: putScript(kind.Key, kind.Changed),
		forget: o.Forget, now: o.Now}
	if o.StandIn != nil {
		r := *o.StandIn
		r.Created, r.Updated = s.stamp(), s.stamp()
		for _, secret := range kind.Secrets(&r.Value) {
			secret.seal(ring, s.place(r.ID))
		}
		s.standIn = &r
	}
	return s
}

// Change stores what edit makes of a record, and reports whether there was one. Edit gets the record as it
// is, with its secrets masked; nil: there is none. What it leaves masked stays as it was; where that can't
// be, the error is Invalid and names the fields. When somebody else changes the record meanwhile, edit is
// asked again, and after some times the error is a Conflict.
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

// Update is Change for a record that exists: edit never gets nil. Unknown: NotFound.
func (s *Store[V]) Update(ctx context.Context, id string, edit func(old *Record[V]) (V, error)) error {
	_, err := s.Change(ctx, id, func(old *Record[V]) (V, error) {
		if old == nil {
			return *new(V), s.kind.Missing(id)
		}
		return edit(old)
	})
	return err
}

// edited makes the record that follows another (nil: none).
func (s *Store[V]) edited(id string, old *Record[V], edit func(old *Record[V]) (V, error)) (*Record[V],
	error) {
	next := &Record[V]{ID: id, Created: s.stamp(), Updated: s.stamp(), revision: rand.Text()}
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

// Key is where a record stands.
func (s *Store[V]) Key(id string) string { return redisdb.Key(0, s.kind.Key, id) }

// StateKey is where the state of a record stands.
func (s *Store[V]) StateKey(id string) string { return redisdb.Key(0, s.kind.Key, id, "state") }

// VersionKey is where the version stands, for [redisdb.NewCache].
func (s *Store[V]) VersionKey() string { return redisdb.Key(0, s.kind.Index, "version") }

func (s *Store[V]) indexKey() string { return redisdb.Key(0, s.kind.Index) }

// place is what the sealed secrets of a record are bound to, together with their fields.
func (s *Store[V]) place(id string) string { return s.kind.Key + ":" + id }

func (s *Store[V]) stamp() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

// contended is the error when others were first each time.
func (s *Store[V]) contended(id string) error {
	return fault.New(fault.Conflict, s.kind.Code, "The %s %s is being changed by others; try again", s.kind.Name,
		id)
}
