package records

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/redis/go-redis/v9"
)

// Version returns the number of changes of all records. Data that is read after it is at least as new.
func (s *Store[V]) Version(ctx context.Context) (string, error) {
	version, err := s.client.Get(ctx, s.VersionKey()).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return "0", nil
	case err != nil:
		return "", s.failed(err, "look at the version of", "records")
	}
	return version, nil
}

// PutAt stores a record if no record has changed since a version, and returns it as it is now, or nil if one
// has. It is for records that must agree with each other. Fields of the record's state are set in the same
// step; an empty value removes one, the others stay. It keeps no masked secret, so it is for kinds without
// secrets.
func (s *Store[V]) PutAt(ctx context.Context, version, id string, v V, state map[string]string) (*Record[V],
	error) {
	old, err := s.loadOne(ctx, id, false)
	if err != nil {
		return nil, err
	}
	next := &Record[V]{ID: id, Value: v, Created: s.time(), Updated: s.time(), revision: rand.Text()}
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

// DeleteAt removes a record and its state if no record has changed since a version, and reports whether that
// was so. It returns Options.InUse's error if something needs it.
func (s *Store[V]) DeleteAt(ctx context.Context, version, id string) (bool, error) {
	if !valid(id) {
		return true, nil
	}
	if err := s.inUse(ctx, s.kind.Name, id); err != nil {
		return false, err
	}
	done, err := deleteScript.Run(ctx, s.client, s.keys(id), deleteArgs{ID: id, Version: version})
	if err != nil {
		return false, s.failed(err, "delete", id)
	}
	return done >= 0, nil
}

// State returns fields of the states of records, with one round trip. Missing fields are empty.
func (s *Store[V]) State(ctx context.Context, fields []Field) ([]string, error) {
	pipe := s.client.Pipeline()
	got := make([]*redis.StringCmd, len(fields))
	for i, f := range fields {
		got[i] = pipe.HGet(ctx, s.StateKey(f.ID), f.Name)
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
	values := make([]string, len(fields))
	for i, cmd := range got {
		value, err := cmd.Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, s.failed(err, "read the state of", fields[i].ID)
		}
		values[i] = value
	}
	return values, nil
}

// Field names a field of a record's state.
type Field struct{ ID, Name string }
