package records

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Version tells how many changes the records have seen. What was read of them after it is at least as new.
func (s *Store[V]) Version(ctx context.Context) (string, error) {
	version, err := s.client.Get(ctx, s.VersionKey()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "0", nil
	case err != nil:
		return "", s.away(err, "look at the version of", "records")
	}
	return version, nil
}

// PutAt stores a record, if none of all the records was changed since they had a version, and gives it as it
// is now: for records that must agree with each other. Nil: one was changed. Fields of the record's state are
// set in the same step; an empty one goes, the others stay. It keeps no secret that is masked, so it is for
// kinds without secrets.
func (s *Store[V]) PutAt(ctx context.Context, version, id string, v V, state map[string]string) (*Record[V],
	error) {
	old, err := s.loadOne(ctx, id, false)
	if err != nil {
		return nil, err
	}
	next := &Record[V]{ID: id, Value: v, Created: s.stamp(), Updated: s.stamp(), revision: rand.Text()}
	if old != nil {
		next.Created = old.Created
	}
	fields := make([]string, 0, 2*len(state))
	for name, value := range state {
		fields = append(fields, name, value)
	}
	done, err := s.writeAt(ctx, version, next, old, true, fields...)
	if err != nil || !done {
		return nil, err
	}
	return next, nil
}

// DeleteAt removes a record and its state, if none of all the records was changed since they had a version,
// and reports whether the version still held.
func (s *Store[V]) DeleteAt(ctx context.Context, version, id string) (bool, error) {
	if !valid(id) {
		return true, nil
	}
	done, err := deleteScript.Run(ctx, s.client, s.keys(id), id, version).Int()
	if err != nil {
		return false, s.away(err, "delete", id)
	}
	return done >= 0, nil
}

// State reads fields of the states of records, in one round trip; what isn't there is empty.
func (s *Store[V]) State(ctx context.Context, fields []Field) ([]string, error) {
	pipe := s.client.Pipeline()
	got := make([]*redis.StringCmd, len(fields))
	for i, f := range fields {
		got[i] = pipe.HGet(ctx, s.StateKey(f.ID), f.Name)
	}
	values := make([]string, len(fields))
	if len(fields) == 0 {
		return values, nil
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, s.away(err, "read the state of", strconv.Itoa(len(fields))+" records")
	}
	for i, cmd := range got {
		value, err := cmd.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, s.away(err, "read the state of", fields[i].ID)
		}
		values[i] = value
	}
	return values, nil
}

// Field names a field of a record's state.
type Field struct{ ID, Name string }
