package redisdb

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// parseInfo parses the reply to INFO: lines of name:value between comments.
func parseInfo(text string) map[string]string {
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(name, "#") {
			info[name] = value
		}
	}
	return info
}

// number returns a whole number of INFO; zero if it is absent or invalid.
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

// infos reads sections of INFO from every server that accepts writes.
func (db *DB) infos(ctx context.Context, sections ...string) ([]map[string]string, error) {
	var mu sync.Mutex
	var all []map[string]string
	err := db.eachMaster(ctx, func(ctx context.Context, c redis.Cmdable) error {
		info := make(map[string]string)
		for _, section := range sections { // several at once need Redis 7
			text, err := c.Info(ctx, section).Result()
			if err != nil {
				return err
			}
			for name, value := range parseInfo(text) {
				info[name] = value
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, info)
		return nil
	})
	return all, err
}
