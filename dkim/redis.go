package dkim

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
)

var (
	//go:embed put.lua
	putSource string
	//go:embed delete.lua
	deleteSource string

	putScript    = redisdb.NewScript("dkim/put", putSource)
	deleteScript = redisdb.NewScript("dkim/delete", deleteSource)
)

func domainKey(domain string) string { return redisdb.Key(0, "dkim", domain) } // a domain has a dot, so none is "version"
func indexKey() string               { return redisdb.Key(0, "dkim") }
func versionKey() string             { return redisdb.Key(0, "dkim", "version") }

// stored is a domain's key as Redis has it.
type stored struct {
	Domain   string    `json:"domain"`
	Selector string    `json:"selector"`
	Sealed   string    `json:"privateKey"`
	Record   string    `json:"record"`
	Created  time.Time `json:"created"`
	text     string    // as it was read; empty: new
}

// answer is the key as answers show it.
func (s *stored) answer() api.DomainKey {
	return api.DomainKey{
		DKIM:   api.DKIM{Domain: s.Domain, Selector: s.Selector, PrivateKey: mask},
		Record: s.Record, Created: s.Created,
	}
}

func decode(text string) (*stored, error) {
	s := &stored{text: text}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("decode a stored key: %w", err)
	}
	return s, nil
}

// store is what Redis keeps of domain keys.
type store struct{ client redis.UniversalClient }

// put stores a key that was read as old; false when somebody changed it meanwhile.
func (s store) put(ctx context.Context, next, old *stored) (bool, error) {
	text, err := json.Marshal(next)
	if err != nil {
		return false, fmt.Errorf("encode a key: %w", err)
	}
	read := ""
	if old != nil {
		read = old.text
	}
	done, err := putScript.Run(ctx, s.client, []string{domainKey(next.Domain), indexKey(), versionKey()}, next.Domain, read, text).Int()
	return done == 1, err
}

// remove deletes a key and reports whether there was one.
func (s store) remove(ctx context.Context, domain string) (bool, error) {
	existed, err := deleteScript.Run(ctx, s.client, []string{domainKey(domain), indexKey(), versionKey()}, domain).Int()
	return existed == 1, err
}

// first reads the key of the first of these domains that has one; nil when none has.
func (s store) first(ctx context.Context, domains []string) (*stored, error) {
	rows, err := s.read(ctx, domains)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// all reads every key, in the order of their domains.
func (s store) all(ctx context.Context) ([]*stored, error) {
	domains, err := s.client.ZRange(ctx, indexKey(), 0, -1).Result()
	if err != nil || len(domains) == 0 {
		return nil, err
	}
	return s.read(ctx, domains)
}

func (s store) read(ctx context.Context, domains []string) ([]*stored, error) {
	keys := make([]string, len(domains))
	for i, domain := range domains {
		keys[i] = domainKey(domain)
	}
	values, err := s.client.MGet(ctx, keys...).Result()
	if err != nil {
		return nil, err
	}
	var rows []*stored
	for _, value := range values {
		text, ok := value.(string)
		if !ok {
			continue
		}
		row, err := decode(text)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// away says what was tried when Redis failed, and tells clients to come back when that is all it was.
func away(err error, format string, args ...any) error {
	return redisdb.Away(fmt.Errorf("dkim: "+format+": %w", append(args, err)...))
}
