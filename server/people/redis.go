package people

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

//go:embed *.lua
var lua embed.FS

var (
	putScript   = redisdb.NewScript[putArgs, bool]("people/put", redisdb.Source(lua, "put.lua"))
	countScript = redisdb.NewScript[countArgs, int]("people/count", redisdb.Source(lua, "count.lua"))
)

type putArgs struct {
	Name, Before, After string
	Binds               bool
}

type countArgs struct{ Window int64 } // ms

func personKey(name string) string { return redisdb.Key(0, "person", name) }
func indexKey() string             { return redisdb.Key(0, "people") }
func versionKey() string           { return redisdb.Key(0, "people", "version") }
func linkKey(hash string) string   { return redisdb.Key(0, "people", "link", hash) }
func subjectKey(id api.Identity) string {
	sum := sha256.Sum256([]byte(id.Issuer + "\n" + id.Subject))
	return redisdb.Key(0, "people", "subject", hex.EncodeToString(sum[:]))
}
func failuresKey(name string) string {
	return redisdb.Key(0, "people", "failures", shortHash(name))
}
func codesKey(name string) string { return redisdb.Key(0, "people", "codes", shortHash(name)) }

// shortHash bounds the length of a key that is made of what somebody typed.
func shortHash(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}

// recordName and linkName are the names that sealed values are bound to.
func recordName(name string) string { return "person:" + name }
func linkName(hash string) string   { return "link:" + hash }

// store reads and writes people and links.
type store struct {
	client redis.UniversalClient
	ring   *seal.Ring
}

// load returns a record and its text in Redis, which is empty if there is none. errRefused: Postroom did not
// write it.
func (s store) load(ctx context.Context, name string) (*record, string, error) {
	text, err := s.client.Get(ctx, personKey(name)).Result()
	if errors.Is(err, redis.Nil) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", redisdb.Failed(err, "people: read person %s", name)
	}
	r, err := s.open(name, text)
	return r, text, err
}

func (s store) open(name, text string) (*record, error) {
	plain, err := s.ring.Open(text, recordName(name))
	if err != nil {
		return nil, &refused{name, err}
	}
	r := &record{}
	if err := json.Unmarshal(plain, r); err != nil {
		return nil, fmt.Errorf("people: decode person %s: %w", name, err)
	}
	return r, nil
}

// put replaces a record's text as it was read by another's, or by none if nil. It stores the person's name
// for the issuer's user that the record is bound to, or was. It returns false if another change came first,
// or if that user is another person.
func (s store) put(ctx context.Context, name, before string, was *api.Identity, next *record) (bool, error) {
	after := ""
	if next != nil {
		plain, err := json.Marshal(next)
		if err != nil {
			return false, fmt.Errorf("people: encode person %s: %w", name, err)
		}
		after = s.ring.Seal(plain, recordName(name))
	}
	id := was
	if next != nil {
		id = next.Identity
	}
	var bound []string
	if id != nil && id.Subject != "" {
		bound = []string{subjectKey(*id)}
	}
	return s.write(ctx, putArgs{name, before, after, was == nil || was.Subject == ""}, bound...)
}

func (s store) write(ctx context.Context, a putArgs, bound ...string) (bool, error) {
	keys := append([]string{personKey(a.Name), indexKey(), versionKey()}, bound...)
	done, err := putScript.Run(ctx, s.client, keys, a)
	if err != nil {
		return false, redisdb.Failed(err, "people: store person %s", a.Name)
	}
	return done, nil
}

// nameOf returns the person that a user of an issuer is; empty means none that is known.
func (s store) nameOf(ctx context.Context, id api.Identity) (string, error) {
	name, err := s.client.Get(ctx, subjectKey(id)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return name, redisdb.Failed(err, "people: look up a user of %s", id.Issuer)
}

// names returns a part of all names in their order, and the number of all. A size of 0 returns all.
func (s store) names(ctx context.Context, from, size int) ([]string, int, error) {
	total, err := s.client.ZCard(ctx, indexKey()).Result()
	var names []string
	if err == nil {
		names, err = s.client.ZRange(ctx, indexKey(), int64(from), int64(from+size-1)).Result()
	}
	if err != nil {
		return nil, 0, redisdb.Failed(err, "people: list persons")
	}
	return names, int(total), nil
}

// count counts a failure, and returns the number in its hour.
func (s store) count(ctx context.Context, key string) (int, error) {
	return countScript.Run(ctx, s.client, []string{key}, countArgs{time.Hour.Milliseconds()})
}

// counted returns the number of failures in the current hour.
func (s store) counted(ctx context.Context, key string) (int, error) {
	n, err := s.client.Get(ctx, key).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}

// refused is the error of a record that Postroom did not write.
type refused struct {
	name string
	err  error
}

// Error names the person and the reason.
func (r *refused) Error() string {
	return "people: the record of " + r.name + " was not written by Postroom: " + r.err.Error()
}

// Unwrap returns the reason.
func (r *refused) Unwrap() error { return r.err }

func personNotFound() error {
	return fault.New(fault.NotFound, "PersonNotFound", "User was not found")
}
