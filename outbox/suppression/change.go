package suppression

import (
	"context"
	"strconv"
	"time"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
)

// addBatch bounds the entries that one script adds. Each blocks Redis for some 5 µs.
const addBatch = 200

// Add adds entries. An existing entry of the same reason and scope stays, with the later of both expiries.
// Add returns the number of entries that were not in force before. If an entry is invalid nothing is added,
// and the error, of kind fault.Invalid, names the fields as suppressions[0].address. After any other error
// some may have been added.
func (s *Store) Add(ctx context.Context, entries ...Entry) (added int, err error) {
	now := s.now()
	normal, err := normalAll(entries, now)
	if err != nil {
		return 0, err
	}
	return s.add(ctx, normal, now)
}

// normalAll returns entries in normal form, or an error that names all invalid fields.
func normalAll(entries []Entry, now time.Time) ([]Entry, error) {
	normal := make([]Entry, len(entries))
	var wrong []fault.Field
	for i, e := range entries {
		var fields []fault.Field
		normal[i], fields = e.Normal("suppressions["+strconv.Itoa(i)+"].", now)
		wrong = append(wrong, fields...)
	}
	return normal, fault.InvalidFields(wrong)
}

// add adds entries that are in normal form, with one round trip.
func (s *Store) add(ctx context.Context, entries []Entry, now time.Time) (added int, err error) {
	if entries, err = s.withoutErased(ctx, entries); err != nil || len(entries) == 0 {
		return 0, err
	}
	pipe := s.db.ReplicatedPipeline()
	var answers []*redisdb.Reply[int]
	send := func(shard int, values []any) {
		answers = append(answers, addScript.Add(pipe, s.addKeys(shard), addArgs{Now: clock(now), Entries: values}))
	}
	var batches [shards][]any
	for i := range entries {
		p := bucketOf(entries[i].subject())
		values := append(batches[p.shard], addValues(&entries[i], p)...)
		if len(values) >= addBatch*addWidth {
			send(p.shard, values)
			values = nil
		}
		batches[p.shard] = values
	}
	for shard, values := range batches {
		if values != nil {
			send(shard, values)
		}
	}
	if err := pipe.Exec(ctx); err != nil {
		return 0, redisdb.Failed(err, "suppression: add entries")
	}
	for _, answer := range answers {
		n, err := answer.Read()
		if err != nil {
			return added, redisdb.Failed(err, "suppression: add entries")
		}
		added += n
	}
	return added, nil
}

// addKeys returns the keys of the script that adds entries to a shard.
func (s *Store) addKeys(shard int) []string {
	keys := []string{countsKey(shard)}
	if version := s.VersionKey(); version != "" {
		keys = append(keys, version)
	}
	return keys
}

// addWidth is the number of values of an entry.
const addWidth = 9

// addValues returns an entry as add.lua reads it.
func addValues(e *Entry, b bucket) []any {
	scope := scopeOf(e.Account, e.List)
	field, long := fieldOf(fieldName(scope, b.subject))
	return []any{b.number, field, scope, e.Reason.letter(), clock(e.Created), end(e.Expires), e.Source,
		e.evidence(), long}
}

// Remove removes the entries of one scope about an address or a domain that have e.Reason. If that is empty,
// it removes all, even the entry that the person was erased. It ignores other fields of e. It reports whether
// an entry was in force.
func (s *Store) Remove(ctx context.Context, e Entry) (bool, error) {
	now, reason, letter := s.now(), e.Reason, ""
	if reason == "" {
		e.Reason = Manual
	}
	e, wrong := e.Normal("", now)
	if len(wrong) > 0 {
		return false, fault.InvalidFields(wrong)
	}
	if reason != "" {
		letter = reason.letter()
	}
	scope, removed := scopeOf(e.Account, e.List), 0
	for _, form := range message.AddressForms(e.subject()) {
		p := bucketOf(form)
		field, _ := fieldOf(fieldName(scope, form))
		n, err := removeScript.RunReplicated(ctx, s.db, []string{countsKey(p.shard)},
			removeArgs{Bucket: p.number, Field: field, Scope: scope, Letter: letter, Now: clock(now)})
		if err != nil {
			return false, redisdb.Failed(err, "suppression: remove an entry")
		}
		removed += n
	}
	var err error
	recalled := false
	if reason == "" && e.Address != "" && e.List == "" {
		recalled, err = s.recall(ctx, scope, e.Address)
	}
	return removed > 0 || recalled, err
}
