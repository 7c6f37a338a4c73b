package suppression

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/seal"
)

// Erased is the reason of an address whose person was erased. It stops all mail. It has no entry that could
// be listed: only who names the address finds it.
const Erased Reason = "erased"

// The digest of an erased address is its HMAC-SHA-256 under a key of this Redis. The key is random, made
// once, and sealed. So it stays when the instance's secret is replaced, and a dump of Redis without the
// secret does not show whether an address was erased. The bucket follows from the digest, not from the
// address, which it would nearly give away.

const digestSize = 18 // bytes

// keyName is the name that the key is sealed for, keyField the field that has it. The key is in a hash, so
// that a [Look] can notice the very first erasure.
const keyName, keyField = "suppression:key", "key"

func erasedKeyKey() string { return redisdb.Key(0, "suppression", "key") }

func erasedKey(digest string) string {
	n := redisdb.PartitionFor(digest, shards*buckets)
	return redisdb.Key(n%shards, "suppression", "erased", strconv.Itoa(n/shards))
}

// digests know who was erased.
type digests struct {
	db   *redisdb.DB
	ring *seal.Ring             // nil if no one can be erased
	key  atomic.Pointer[[]byte] // the digests' key; nil until it is read
}

// erasedField returns the field of a digest in a scope.
func erasedField(scope, digest string) string { return scope + " " + digest }

// known returns the key of digests, or nil if no one was erased yet.
func (s *digests) known(ctx context.Context) ([]byte, error) {
	if key := s.key.Load(); key != nil || s.ring == nil {
		return s.cached(), nil
	}
	sealed, err := s.db.Client().HGet(ctx, erasedKeyKey(), keyField).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, redisdb.Failed(err, "suppression: read the key of erased addresses")
	}
	return s.open(sealed)
}

// cached returns the key if this process has it, otherwise nil.
func (s *digests) cached() []byte {
	if key := s.key.Load(); key != nil {
		return *key
	}
	return nil
}

// open opens the key, and remembers it.
func (s *digests) open(sealed string) ([]byte, error) {
	key, err := s.ring.Open(sealed, keyName)
	if err != nil { // no one may be sent to: erased people can't be recognized
		return nil, fault.Wrap(err, fault.Unavailable, "",
			"The key of erased addresses can't be decrypted with this process's secret")
	}
	s.key.Store(&key)
	return key, nil
}

// secret is known, and makes the key if there is none. It is nil without Options.Ring.
func (s *digests) secret(ctx context.Context) ([]byte, error) {
	if s.ring == nil {
		return nil, nil
	}
	made := make([]byte, sha256.Size)
	_, _ = rand.Read(made) // never fails
	// Only the first process of all writes it. Whoever comes later reads what that one wrote.
	err := s.db.Client().HSetNX(ctx, erasedKeyKey(), keyField, s.ring.Seal(made, keyName)).Err()
	if err != nil {
		return nil, redisdb.Failed(err, "suppression: make the key of erased addresses")
	}
	return s.known(ctx)
}

// Reseal seals the key of erased addresses again, if it is sealed under an older secret. It returns how many
// it sealed: 1 or 0.
func (s *digests) Reseal(ctx context.Context) (int, error) {
	sealed, err := s.db.Client().HGet(ctx, erasedKeyKey(), keyField).Result()
	if errors.Is(err, redis.Nil) || s.ring == nil {
		return 0, nil
	}
	if err != nil {
		return 0, redisdb.Failed(err, "suppression: read the key of erased addresses")
	}
	again, changed, err := s.ring.Renew(sealed, keyName)
	if err != nil {
		return 0, fmt.Errorf("seal the key of erased addresses again: %w", err)
	}
	if !changed {
		return 0, nil
	}
	err = s.db.Client().HSet(ctx, erasedKeyKey(), keyField, again).Err()
	return 1, redisdb.Failed(err, "suppression: seal the key of erased addresses again")
}

// Digest returns the keyed hash of a text, such as an address in normal form. Without the secret, no one can
// compute or reverse it. It is empty without Options.Ring.
func (s *digests) Digest(ctx context.Context, text string) (string, error) {
	key, err := s.secret(ctx)
	return digestOf(key, text), err
}

// digestOf returns the digest of a text; "" without a key.
func digestOf(key []byte, text string) string {
	if key == nil {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:digestSize])
}

// Erase stops all mail of an account, or of the whole instance if account is empty, to an address. It removes
// what is stored about the address there: entries with their evidence, and counts of soft bounces. tally gets
// the number of entries before they go. After that no entry about the address is added in that scope. You can
// repeat Erase. [Store.Remove] without a reason reverts it.
func (s *Store) Erase(ctx context.Context, account, address string, tally func(n int) error) error {
	subject, err := normalAddress(address)
	if err != nil {
		return fault.InvalidField("email", "%s", err)
	}
	digest, err := s.Digest(ctx, subject)
	if err != nil {
		return err
	}
	if digest == "" {
		return errors.New("suppression: nobody can be erased without a ring")
	}
	keys := []string{erasedKey(digest)}
	if version := s.VersionKey(); version != "" {
		keys = append(keys, version)
	}
	_, err = eraseScript.RunReplicated(ctx, s.db, keys,
		eraseArgs{Field: erasedField(scopeOf(account, ""), digest), Now: clock(s.now())})
	if err != nil {
		return redisdb.Failed(err, "suppression: erase a person")
	}
	rows, err := s.rowsOf(ctx, subject)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r row) bool {
		of, _ := parseScope(r.scope)
		return account != "" && of != account
	})
	if err := tally(len(rows)); err != nil {
		return err
	}
	for _, r := range rows {
		_, err := removeScript.RunReplicated(ctx, s.db, []string{countsKey(r.shard)}, removeArgs{
			Bucket: r.bucket, Field: r.field, Scope: r.scope, Letter: r.reason.letter(), Now: clock(s.now())})
		if err != nil {
			return redisdb.Failed(err, "suppression: remove entries of an erased person")
		}
	}
	for _, form := range message.AddressForms(subject) {
		if err := s.eraseCounts(ctx, account, form); err != nil {
			return err
		}
	}
	return nil
}

// eraseCounts removes the counts of an account's messages (or all accounts') to an address, because their
// keys name it.
func (s *Store) eraseCounts(ctx context.Context, account, subject string) error {
	drop := func(keys []string) error {
		if len(keys) == 0 {
			return nil
		}
		pipe := s.db.Client().Pipeline()
		for _, key := range keys {
			pipe.Del(ctx, key)
		}
		_, err := pipe.Exec(ctx)
		return redisdb.Failed(err, "suppression: remove counts of an erased person")
	}
	shard := bucketOf(subject).shard
	if account != "" {
		field, _ := fieldOf(fieldName(scopeOf(account, ""), subject))
		return drop([]string{softKey(shard, field), saidKey(shard, HardBounce, field),
			saidKey(shard, SpamReport, field)})
	}
	escaped := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`).Replace(subject)
	for _, kind := range []string{"soft", "said"} {
		if err := s.db.Scan(ctx, redisdb.Key(shard, "suppression", kind)+":*"+escaped, drop); err != nil {
			return err
		}
	}
	return nil
}

// Erased reports for each address whether its person was erased, for an account or for the whole instance. An
// empty account asks for the instance alone.
func (s *digests) Erased(ctx context.Context, account string, addresses ...string) ([]bool, error) {
	about := make([]Entry, len(addresses))
	for i, address := range addresses {
		about[i] = Entry{Address: foldAddress(address), Account: account}
	}
	found, err := s.erasedOf(ctx, about)
	gone := make([]bool, len(addresses))
	for i := range found {
		gone[i] = found[i] != nil
	}
	return gone, err
}

// erasedOf returns for each entry, whose address is in normal form, the entry that says that the person was
// erased for its account or the instance, or nil.
func (s *digests) erasedOf(ctx context.Context, entries []Entry) ([]*Entry, error) {
	key, err := s.known(ctx)
	if err != nil || key == nil || len(entries) == 0 {
		return make([]*Entry, len(entries)), err
	}
	pipe := s.db.Client().Pipeline()
	answers := make([][]*redis.SliceCmd, len(entries))
	for i, e := range entries {
		if e.Address == "" {
			continue
		}
		for _, form := range message.AddressForms(e.Address) {
			digest := digestOf(key, form)
			answers[i] = append(answers[i], pipe.HMGet(ctx, erasedKey(digest),
				erasedField(scopeOf(e.Account, ""), digest), erasedField(instance, digest)))
		}
	}
	if pipe.Len() > 0 {
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, redisdb.Failed(err, "suppression: look for erased people")
		}
	}
	found := make([]*Entry, len(entries))
	for i := range answers {
		for _, answer := range answers[i] {
			for n, scope := range []string{scopeOf(entries[i].Account, ""), instance} {
				if since, ok := answer.Val()[n].(string); ok && found[i] == nil {
					e := erasedEntry(scope, entries[i].Address, since)
					found[i] = &e
				}
			}
		}
	}
	return found, nil
}

// findErased returns that the person of an address was erased, in all scopes.
func (s *digests) findErased(ctx context.Context, address string) (found []Entry, err error) {
	key, err := s.known(ctx)
	if err != nil || key == nil {
		return nil, err
	}
	for _, form := range message.AddressForms(address) {
		digest := digestOf(key, form)
		fields, err := s.db.Client().HGetAll(ctx, erasedKey(digest)).Result()
		if err != nil {
			return nil, redisdb.Failed(err, "suppression: look for erased people")
		}
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if scope, of, _ := strings.Cut(field, " "); of == digest {
				found = append(found, erasedEntry(scope, address, fields[field]))
			}
		}
	}
	return found, nil
}

// erasedEntry is the entry that stops mail to an erased person.
func erasedEntry(scope, address, since string) Entry {
	e := record{reason: Erased, created: parseHex(since)}.entry(scope, address)
	e.Source = "erasure"
	return e
}

// withoutErased returns the entries that are not about people who were erased in their scope. Such entries
// would store the address again.
func (s *digests) withoutErased(ctx context.Context, entries []Entry) ([]Entry, error) {
	found, err := s.erasedOf(ctx, entries)
	if err != nil {
		return nil, err
	}
	var kept []Entry
	for i, e := range entries {
		if found[i] == nil {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// recall forgets that a person was erased in a scope, and reports whether one was.
func (s *digests) recall(ctx context.Context, scope, address string) (bool, error) {
	key, err := s.known(ctx)
	if err != nil || key == nil {
		return false, err
	}
	any := false
	for _, form := range message.AddressForms(address) {
		digest := digestOf(key, form)
		n, err := s.db.Client().HDel(ctx, erasedKey(digest), erasedField(scope, digest)).Result()
		if any = any || n > 0; err != nil {
			return any, redisdb.Failed(err, "suppression: take an erasure back")
		}
	}
	return any, nil
}
