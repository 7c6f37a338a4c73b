package redisdb

import (
	"context"
	"fmt"
	"os/exec"
)

// openHome starts a Redis of our own: a redis-server when the program is installed, else a store in this process.
func openHome(ctx context.Context, o Options) (home, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil || !childSupported {
		o.Logger.Warn("no Redis configured and no redis-server installed: everything is kept in memory and lost at exit",
			"fix", "install redis-server, or set redis.url")
		return openInProcess()
	}
	c, err := startChild(ctx, path, o)
	if err != nil {
		return nil, fmt.Errorf("embedded redis: %w", err)
	}
	return c, nil
}
