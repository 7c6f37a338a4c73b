package records

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/internal/redisdb"
)

var (
	//go:embed put.lua
	putSource string
	//go:embed delete.lua
	deleteSource string

	deleteScript = redisdb.NewScript[deleteArgs, int]("records/delete", deleteSource)
)

type putArgs struct {
	ID           string
	ReadRevision string
	Revision     string
	Record       []byte
	KeepState    bool
	Version      string
	Fields       []string
}

type deleteArgs struct {
	ID      string
	Version string
}

// putScript returns the script that stores a record of a kind.
func putScript(key, changed string) *redisdb.Script[putArgs, bool] {
	return redisdb.NewScript[putArgs, bool](key+"/put", putSource+changed+"\nreturn 1")
}

// valid reports whether id can be a record's. With a colon it could be part of another key, such as
// "a:state".
func valid(id string) bool { return id != "" && !strings.Contains(id, ":") }

func (s *Store[V]) keys(id string) []string {
	return []string{s.Key(id), s.indexKey(), s.VersionKey(), s.StateKey(id)}
}

// write stores a record that was read as old, or a new one if that is nil. It returns false if the record has
// changed since. keepState is for a record that says the same as before.
func (s *Store[V]) write(ctx context.Context, next, old *Record[V], keepState bool) (bool, error) {
	return s.writeAt(ctx, "", next, old, keepState)
}

// writeAt is write if the records still have a version (empty: any). It also sets fields of the state, each a
// name and a value.
func (s *Store[V]) writeAt(ctx context.Context, version string, next, old *Record[V], keepState bool,
	state ...string) (bool, error) {
	if !valid(next.ID) {
		return false, s.doing(errors.New("an id must not be empty or have a colon"), "store", next.ID)
	}
	text, err := json.Marshal(next)
	if err != nil {
		return false, s.doing(err, "encode", next.ID)
	}
	args := putArgs{ID: next.ID, Revision: next.revision, Record: text, KeepState: keepState, Version: version,
		Fields: state}
	if old != nil {
		args.ReadRevision = old.revision
	}
	done, err := s.put.Run(ctx, s.client, s.keys(next.ID), args)
	if err != nil {
		return false, s.failed(err, "store", next.ID)
	}
	return done, nil
}

// Delete removes a record and its state. It returns NotFound if it is not stored, and Options.InUse's error
// if something needs it.
func (s *Store[V]) Delete(ctx context.Context, id string) error {
	if !valid(id) {
		return s.kind.Missing(id)
	}
	if err := s.inUse(ctx, s.kind.Name, id); err != nil {
		return err
	}
	existed, err := deleteScript.Run(ctx, s.client, s.keys(id), deleteArgs{ID: id})
	switch {
	case err != nil:
		return s.failed(err, "delete", id)
	case existed == 0:
		return s.kind.Missing(id)
	}
	s.forget(id)
	return nil
}

// load reads records in one round trip, with their states if wanted, their secrets sealed. A record that does
// not exist is nil.
func (s *Store[V]) load(ctx context.Context, ids []string, states bool) ([]*Record[V], error) {
	pipe := s.client.Pipeline()
	rows, known := make([]*redis.SliceCmd, len(ids)), make([]*redis.MapStringStringCmd, len(ids))
	for i, id := range ids {
		if !valid(id) {
			continue
		}
		rows[i] = pipe.HMGet(ctx, s.Key(id), "record", "revision")
		if states && s.kind.Changed != "" {
			known[i] = pipe.HGetAll(ctx, s.StateKey(id))
		}
	}
	if pipe.Len() > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, s.failed(err, "read", strings.Join(ids[:min(len(ids), 3)], ", "))
		}
	}
	found := make([]*Record[V], len(ids))
	for i, id := range ids {
		if rows[i] == nil {
			continue
		}
		r, err := s.decode(id, rows[i].Val())
		if err != nil {
			return nil, err
		}
		if r != nil && known[i] != nil {
			r.State = known[i].Val()
		}
		found[i] = r
	}
	return found, nil
}

// decode returns the record of a row: its text and revision, or nothing.
func (s *Store[V]) decode(id string, row []any) (*Record[V], error) {
	text, _ := row[0].(string)
	revision, stored := row[1].(string)
	r := &Record[V]{ID: id, revision: revision}
	switch {
	case !stored && s.standIn != nil && s.standIn.ID == id:
		*r = *s.standIn
		return r, nil
	case !stored:
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, s.doing(err, "decode", id)
	}
	return r, nil
}

// ids returns a part of all ids in their order, and the number of all. A stand-in without a stored record is
// the first.
func (s *Store[V]) ids(ctx context.Context, from, size int) (ids []string, total int, err error) {
	pipe := s.client.Pipeline()
	count := pipe.ZCard(ctx, s.indexKey())
	rows := pipe.ZRange(ctx, s.indexKey(), int64(max(0, from-1)), int64(from+size-1)) // with the one before
	var stored *redis.IntCmd
	if s.standIn != nil {
		stored = pipe.Exists(ctx, s.Key(s.standIn.ID))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, s.failed(err, "list", "records")
	}
	ids, total = rows.Val(), int(count.Val())
	switch standsIn := stored != nil && stored.Val() == 0; {
	case standsIn && from == 0:
		ids, total = append([]string{s.standIn.ID}, ids...), total+1
	case standsIn:
		total++
	case from > 0:
		ids = ids[min(1, len(ids)):]
	}
	return ids[:min(size, len(ids))], total, nil
}

// after returns up to n ids that follow id in alphabetical order, or the first ones if it is empty.
func (s *Store[V]) after(ctx context.Context, id string, n int) ([]string, error) {
	from := "-"
	if id != "" {
		from = "(" + id
	}
	ids, err := s.client.ZRangeByLex(ctx, s.indexKey(), &redis.ZRangeBy{Min: from, Max: "+",
		Count: int64(n)}).Result()
	if err != nil {
		return nil, s.failed(err, "list", "records")
	}
	return ids, nil
}
