package records

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed put.lua
	putSource string
	//go:embed delete.lua
	deleteSource string

	deleteScript = redisdb.NewRawScript("records/delete", deleteSource)
)

// putScript makes the script that stores a record of a kind.
func putScript(key, changed string) *redisdb.RawScript {
	return redisdb.NewRawScript(key+"/put", "return 1", putSource, changed)
}

// valid says whether an id can be that of a record. With a colon it might make the key of something else,
// such as "a:state".
func valid(id string) bool { return id != "" && !strings.Contains(id, ":") }

func (s *Store[V]) keys(id string) []string {
	return []string{s.Key(id), s.indexKey(), s.VersionKey(), s.StateKey(id)}
}

// write stores a record that was read as old (nil: there was none); false when somebody changed it meanwhile.
// keepState is for one that says the same as before.
func (s *Store[V]) write(ctx context.Context, next, old *Record[V], keepState bool) (bool, error) {
	return s.writeAt(ctx, "", next, old, keepState)
}

// writeAt is write as long as the records have a version (empty: any), with fields of the state, each a name
// and a value.
func (s *Store[V]) writeAt(ctx context.Context, version string, next, old *Record[V], keepState bool,
	state ...string) (bool, error) {
	if !valid(next.ID) {
		return false, s.doing(errors.New("an id must not be empty or have a colon"), "store", next.ID)
	}
	text, err := json.Marshal(next)
	if err != nil {
		return false, s.doing(err, "encode", next.ID)
	}
	read := ""
	if old != nil {
		read = old.revision
	}
	args := []any{next.ID, read, next.revision, text, keepState, version}
	for _, field := range state {
		args = append(args, field)
	}
	done, err := s.put.Run(ctx, s.client, s.keys(next.ID), args...).Int()
	if err != nil {
		return false, s.away(err, "store", next.ID)
	}
	return done == 1, nil
}

// Delete removes a record and its state. Not stored: NotFound.
func (s *Store[V]) Delete(ctx context.Context, id string) error {
	if !valid(id) {
		return s.kind.Missing(id)
	}
	existed, err := deleteScript.Run(ctx, s.client, s.keys(id), id, "").Int()
	switch {
	case err != nil:
		return s.away(err, "delete", id)
	case existed == 0:
		return s.kind.Missing(id)
	}
	s.forget(id)
	return nil
}

// load reads records in one round trip, with their states if these are wanted and with their secrets sealed.
// Nil stands for one that does not exist.
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
			return nil, s.away(err, "read", strings.Join(ids[:min(len(ids), 3)], ", "))
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

// decode reads what Redis has of a record: nothing, or its text and revision.
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

// ids reads a part of all ids in their order, and how many there are in all. A stand-in that nothing is
// stored for is the first.
func (s *Store[V]) ids(ctx context.Context, from, size int) (ids []string, total int, err error) {
	pipe := s.client.Pipeline()
	count := pipe.ZCard(ctx, s.indexKey())
	rows := pipe.ZRange(ctx, s.indexKey(), int64(max(0, from-1)), int64(from+size-1)) // with the one before
	var stored *redis.IntCmd
	if s.standIn != nil {
		stored = pipe.Exists(ctx, s.Key(s.standIn.ID))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, 0, s.away(err, "list", "records")
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

// after reads up to n ids that follow one in the alphabet; empty: from the first.
func (s *Store[V]) after(ctx context.Context, id string, n int) ([]string, error) {
	from := "-"
	if id != "" {
		from = "(" + id
	}
	ids, err := s.client.ZRangeByLex(ctx, s.indexKey(), &redis.ZRangeBy{Min: from, Max: "+",
		Count: int64(n)}).Result()
	if err != nil {
		return nil, s.away(err, "list", "records")
	}
	return ids, nil
}
