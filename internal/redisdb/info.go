package redisdb

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// parseInfo parses the reply to INFO: lines of name:value between comments. go-redis' parser panics if no
// comment is before the first line.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			info[name] = value
		}
	}
	return info
}

// number returns a whole number from INFO; zero if it is missing or invalid.
func number(info map[string]string, name string) int64 {
	n, _ := strconv.ParseInt(info[name], 10, 64)
	return n
}

// eachMaster runs fn on every server that accepts writes, in a Cluster concurrently.
func (db *DB) eachMaster(ctx context.Context, fn func(context.Context, redis.Cmdable) error) error {
	if c, ok := db.client.(*redis.ClusterClient); ok {
		return c.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return fn(ctx, node) })
	}
	return fn(ctx, db.client)
}

// infoOf reads sections of INFO from one server.
func infoOf(ctx context.Context, c redis.Cmdable, sections ...string) (map[string]string, error) {
	info := make(map[string]string)
	for _, section := range sections { // several together need Redis 7
		text, err := c.Info(ctx, section).Result()
		if err != nil {
			return nil, err
		}
		maps.Copy(info, parseInfo(text))
	}
	return info, nil
}

// infos reads sections of INFO from every server that accepts writes.
func (db *DB) infos(ctx context.Context, sections ...string) ([]map[string]string, error) {
	var mu sync.Mutex
	var all []map[string]string
	err := db.eachMaster(ctx, func(ctx context.Context, c redis.Cmdable) error {
		info, err := infoOf(ctx, c, sections...)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, info)
		return err
	})
	return all, err
}
