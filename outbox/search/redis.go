package search

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
)

//go:embed lua
var files embed.FS

// lua returns a script of this package.
func lua(name string) string { return redisdb.Source(files, "lua/"+name+".lua") }

// The scripts. The comments of each explain its fields.
var (
	claimScript    = redisdb.NewScript[claimArgs, bool]("documents/claim", lua("claim"))
	revisionScript = redisdb.NewScript[struct{}, int64]("documents/revision", lua("revision"))
	behindScript   = redisdb.NewScript[behindArgs, bool]("documents/behind", lua("behind"))
	fillScript     = redisdb.NewScript[struct{}, time.Time]("documents/fill", lua("fill"))
	wantScript     = redisdb.NewScript[wantArgs, []byte]("documents/want", lua("want"))
)

// The arguments of the scripts, by the names that the scripts declare.
type (
	claimArgs struct {
		Holder, Place string
		Lifetime      int64
		Index         string
		TakeOver      bool
	}
	behindArgs struct{ Since int64 }
	wantArgs   struct {
		Wanted   []byte
		Lifetime int64
	}
)

// The keys.
func indexerKey() string  { return redisdb.Key(0, "documents", "indexer") }
func indexKey() string    { return redisdb.Key(0, "documents", "index") }
func revisionKey() string { return redisdb.Key(0, "documents", "revision") }
func behindKey() string   { return redisdb.Key(0, "documents", "behind") }
func fillingKey() string  { return redisdb.Key(0, "documents", "filling") }
func stateKey() string    { return redisdb.Key(0, "documents", "state") }
func rebuildKey() string  { return redisdb.Key(0, "documents", "rebuild") }
func reclaimKey() string  { return redisdb.Key(0, "documents", "reclaim") }
func erasedKey() string   { return redisdb.Key(0, "documents", "erased") }
func askedKey() string    { return redisdb.Key(0, "documents", "asked") }

// Lifetimes.
const (
	claimFor   = 30 * time.Second
	stateFor   = 24 * time.Hour
	rebuildFor = 30 * 24 * time.Hour
	erasedFor  = 24 * time.Hour // longer than anything read before an erasure is still to be written
	askedFor   = time.Minute    // how long after a search the reader hurries
)

// store reads and writes what this package keeps in Redis.
type store struct{ client redis.UniversalClient }

// claim takes or renews the claim. It returns false if another process is the indexer. With takeOver it
// replaces a claim of the same place, whose process is dead. If the index is not the last one kept, it is
// marked for a complete fill. A lease.Lock does neither, and here all of it is one step.
func (s store) claim(ctx context.Context, holder, place, index string, takeOver bool) (bool, error) {
	keys := []string{indexerKey(), indexKey(), behindKey()}
	held, err := claimScript.Run(ctx, s.client, keys,
		claimArgs{holder, place, claimFor.Milliseconds(), index, takeOver})
	if err != nil {
		return false, fmt.Errorf("claim the search index: %w", err)
	}
	return held, nil
}

// indexer returns the place of the indexer, or "".
func (s store) indexer(ctx context.Context) (string, error) {
	claim, err := s.client.Get(ctx, indexerKey()).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", redisdb.Failed(err, "read the indexer of the search index")
	}
	return placeOf(claim), nil
}

// placeOf returns the place of a claim.
func placeOf(claim string) string {
	_, place, _ := strings.Cut(claim, " ")
	return place
}

// revision returns a number higher than all before: the time in microseconds, or the last revision plus one.
func (s store) revision(ctx context.Context) (int64, error) {
	n, err := revisionScript.Run(ctx, s.client, []string{revisionKey()}, struct{}{})
	if err != nil {
		return 0, fmt.Errorf("take a revision: %w", err)
	}
	return n, nil
}

// fallBehind stores that changes since a time are missing.
func (s store) fallBehind(ctx context.Context, since time.Time) error {
	if _, err := behindScript.Run(ctx, s.client, []string{behindKey()},
		behindArgs{max(since.UnixMilli(), 1)}); err != nil {
		return fmt.Errorf("note that the search index is behind: %w", err)
	}
	return nil
}

// beginFilling marks the missing changes as being filled. It returns their start, or zero if none is missing.
func (s store) beginFilling(ctx context.Context) (time.Time, error) {
	since, err := fillScript.Run(ctx, s.client, []string{behindKey(), fillingKey()}, struct{}{})
	if err != nil {
		return time.Time{}, fmt.Errorf("read what the search index misses: %w", err)
	}
	return since, nil
}

// filled stores that nothing is missing, except what fallBehind added since beginFilling.
func (s store) filled(ctx context.Context) error {
	if err := s.client.Del(ctx, fillingKey()).Err(); err != nil {
		return fmt.Errorf("note that the search index is complete: %w", err)
	}
	return nil
}

// oweReclaim notes that the index files are about to have deleted documents of erased people.
func (s store) oweReclaim(ctx context.Context) error {
	err := s.client.Set(ctx, reclaimKey(), "1", 0).Err()
	return redisdb.Failed(err, "note that the search index must be rewritten")
}

// reclaimOwed reports whether the index files may have deleted documents of erased people.
func (s store) reclaimOwed(ctx context.Context) (bool, error) {
	n, err := s.client.Exists(ctx, reclaimKey()).Result()
	return n > 0, redisdb.Failed(err, "read whether the search index must be rewritten")
}

// reclaimed notes that they have none.
func (s store) reclaimed(ctx context.Context) error {
	return redisdb.Failed(s.client.Del(ctx, reclaimKey()).Err(), "note that the search index was rewritten")
}

// erase notes that an erasure is about to delete documents.
func (s store) erase(ctx context.Context, ids []string) error {
	pipe := s.client.TxPipeline()
	pipe.SAdd(ctx, erasedKey(), ids)
	pipe.PExpire(ctx, erasedKey(), erasedFor)
	_, err := pipe.Exec(ctx)
	return redisdb.Failed(err, "note which documents of the search index are erased")
}

// erased returns the documents that an erasure deleted.
func (s store) erased(ctx context.Context, docs []Document) (ids []string, err error) {
	all := make([]any, len(docs))
	for i := range docs {
		all[i] = docs[i].QueueID
	}
	gone, err := s.client.SMIsMember(ctx, erasedKey(), all...).Result()
	for i, is := range gone {
		if is {
			ids = append(ids, docs[i].QueueID)
		}
	}
	return ids, redisdb.Failed(err, "read which documents of the search index are erased")
}

// anyErased reports whether an erasure deleted documents of late.
func (s store) anyErased(ctx context.Context) (bool, error) {
	n, err := s.client.Exists(ctx, erasedKey()).Result()
	return n > 0, redisdb.Failed(err, "read whether documents of the search index were erased")
}

// ask notes that somebody searches, and reports whether somebody did a moment ago.
func (s store) ask(ctx context.Context) (before bool, _ error) {
	err := s.client.SetArgs(ctx, askedKey(), "1", redis.SetArgs{TTL: askedFor, Get: true}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return true, redisdb.Failed(err, "note that somebody searches")
}

// asked reports whether somebody searched a moment ago.
func (s store) asked(ctx context.Context) (bool, error) {
	n, err := s.client.Exists(ctx, askedKey()).Result()
	return n > 0, redisdb.Failed(err, "read whether somebody searches")
}

// unread reports whether the reader still has events of a partition to read, or to finish.
func (s store) unread(ctx context.Context, partition int) (bool, error) {
	pipe, key := s.client.Pipeline(), redisdb.Key(partition, stream)
	last, groups := pipe.XInfoStream(ctx, key), pipe.XInfoGroups(ctx, key)
	if _, err := pipe.Exec(ctx); err != nil { // also if nothing was ever added
		return false, redisdb.Failed(err, "ask what the search index has read")
	}
	for _, g := range groups.Val() {
		if g.Name == group {
			return g.Pending > 0 || g.LastDeliveredID != last.Val().LastGeneratedID, nil
		}
	}
	return false, nil
}

// known is the state of the index in Redis.
type known struct {
	indexer string
	behind  time.Time // zero if nothing is missing
	size    counted
	build   *api.DocumentRebuild
}

// counted is the size of the index that its indexer stores.
type counted struct {
	Documents int       `json:"documents"`
	Bytes     int64     `json:"bytes"`
	At        time.Time `json:"at"`
}

func (s store) read(ctx context.Context) (known, error) {
	found, err := s.client.MGet(ctx, indexerKey(), behindKey(), fillingKey(), stateKey(), rebuildKey()).Result()
	if err != nil {
		return known{}, redisdb.Failed(err, "read the state of the search index")
	}
	texts := make([]string, len(found))
	for i, v := range found {
		texts[i], _ = v.(string)
	}
	k := known{indexer: placeOf(texts[0])}
	for _, mark := range texts[1:3] {
		if n, err := strconv.ParseInt(mark, 10, 64); err == nil &&
			(k.behind.IsZero() || k.behind.After(redisdb.Time(n))) {
			k.behind = redisdb.Time(n)
		}
	}
	_ = json.Unmarshal([]byte(texts[3]), &k.size) // written by another version: ignored
	if json.Unmarshal([]byte(texts[4]), &k.build) != nil {
		k.build = nil
	}
	return k, nil
}

// noteSize stores the size of the index for other processes.
func (s store) noteSize(ctx context.Context, size counted) error {
	raw, err := json.Marshal(size)
	if err != nil {
		return err
	}
	if err := s.client.Set(ctx, stateKey(), raw, stateFor).Err(); err != nil {
		return fmt.Errorf("note the size of the search index: %w", err)
	}
	return nil
}

// want requests a rebuild, unless one is already requested or running. It returns the current one.
func (s store) want(ctx context.Context, now time.Time) (api.DocumentRebuild, error) {
	raw, err := json.Marshal(api.DocumentRebuild{Status: "wanted", Wanted: now.UTC().Truncate(time.Millisecond)})
	if err != nil {
		return api.DocumentRebuild{}, err
	}
	current, err := wantScript.Run(ctx, s.client, []string{rebuildKey()},
		wantArgs{raw, rebuildFor.Milliseconds()})
	if err != nil {
		return api.DocumentRebuild{}, redisdb.Failed(err, "request a rebuild of the search index")
	}
	var b api.DocumentRebuild
	return b, json.Unmarshal(current, &b)
}

// noteBuild stores the progress of a rebuild.
func (s store) noteBuild(ctx context.Context, b api.DocumentRebuild) error {
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := s.client.Set(ctx, rebuildKey(), raw, rebuildFor).Err(); err != nil {
		return fmt.Errorf("store the progress of the search index rebuild: %w", err)
	}
	return nil
}
