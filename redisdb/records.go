package redisdb

import (
	"context"
	_ "embed"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed records_put.lua
	putRecordSource string
	//go:embed records_delete.lua
	deleteRecordSource string

	deleteRecordScript = NewScript("records/delete", deleteRecordSource)
)

// Records keeps things that people change and that every process remembers: accounts, gateways, keys of domains. For each there is a hash
// with its text and a revision; all ids are in a sorted set, in the order of the alphabet; and each change raises a version, which a
// [Cache] watches. It is safe for concurrent use, by any number of processes on one Redis.
type Records struct {
	client redis.UniversalClient
	kind   string
	index  string
	put    *Script
}

// Record is the text of a thing as it stands in Redis.
type Record struct {
	ID       string
	Text     string
	Revision string // another one after each change; empty: nothing is stored
}

// NewRecords names the keys of a kind of records, all in partition 0: <kind>:<id>, <index> and <index>:version. What else is known of a
// record may be in a hash <kind>:<id>:state, which goes with it; changed is Lua text that brings this hash (KEYS[4]) up to date when the
// record is changed, empty if nothing is to be done. Ids must not have a colon.
func NewRecords(db *DB, kind, index, changed string) *Records {
	return &Records{client: db.Client(), kind: kind, index: index, put: NewScript(kind+"/put", "return 1", putRecordSource, changed)}
}

// Key is where a record stands.
func (r *Records) Key(id string) string { return Key(0, r.kind, id) }

// StateKey is where the state of a record stands, if it has any.
func (r *Records) StateKey(id string) string { return Key(0, r.kind, id, "state") }

// IndexKey is where the ids stand.
func (r *Records) IndexKey() string { return Key(0, r.index) }

// VersionKey is where the version stands, for [NewCache].
func (r *Records) VersionKey() string { return Key(0, r.index, "version") }

// Put stores a record that was read at a revision (empty: there was none). False: somebody changed it meanwhile. keepState is for a record
// that says the same as before, such as one that was sealed anew.
func (r *Records) Put(ctx context.Context, next Record, read string, keepState bool) (bool, error) {
	done, err := r.put.Run(ctx, r.client, r.keys(next.ID), next.ID, read, next.Revision, next.Text, keepState).Int()
	return done == 1, err
}

// Remove deletes a record and its state, and reports whether there was one.
func (r *Records) Remove(ctx context.Context, id string) (bool, error) {
	existed, err := deleteRecordScript.Run(ctx, r.client, r.keys(id), id).Int()
	return existed == 1, err
}

func (r *Records) keys(id string) []string {
	return []string{r.Key(id), r.IndexKey(), r.VersionKey(), r.StateKey(id)}
}

// Load reads records in the order of their ids as given, in one round trip. Those that do not exist have no revision.
func (r *Records) Load(ctx context.Context, ids ...string) ([]Record, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pipe := r.client.Pipeline()
	reads := make([]func() (Record, error), len(ids))
	for i, id := range ids {
		reads[i] = r.Read(ctx, pipe, id)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	found := make([]Record, len(ids))
	for i, read := range reads {
		var err error
		if found[i], err = read(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Read asks for a record in a pipeline. Its answer can be taken after Exec; of one that doesn't exist it has no revision.
func (r *Records) Read(ctx context.Context, pipe redis.Pipeliner, id string) func() (Record, error) {
	row := pipe.HMGet(ctx, r.Key(id), "record", "revision")
	return func() (Record, error) {
		values, err := row.Result()
		if err != nil {
			return Record{}, err
		}
		record := Record{ID: id}
		record.Text, _ = values[0].(string)
		record.Revision, _ = values[1].(string)
		return record, nil
	}
}

// Page reads ids in the order of the alphabet, and how many there are in all.
func (r *Records) Page(ctx context.Context, from, size int) (ids []string, total int, err error) {
	pipe := r.client.Pipeline()
	count := pipe.ZCard(ctx, r.IndexKey())
	rows := pipe.ZRange(ctx, r.IndexKey(), int64(from), int64(from+size-1))
	_, err = pipe.Exec(ctx)
	return rows.Val(), int(count.Val()), err
}

// After reads up to n ids that follow one in the alphabet; empty: from the first.
func (r *Records) After(ctx context.Context, id string, n int) ([]string, error) {
	from := "-"
	if id != "" {
		from = "(" + id
	}
	return r.client.ZRangeByLex(ctx, r.IndexKey(), &redis.ZRangeBy{Min: from, Max: "+", Count: int64(n)}).Result()
}
