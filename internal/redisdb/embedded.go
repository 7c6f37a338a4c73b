package redisdb

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
)

// socketName is the embedded server's socket, beside its data.
const socketName = "redis.sock"

// openEmbedded starts our own Redis: a redis-server if the program is installed, otherwise a store in this
// process.
func openEmbedded(ctx context.Context, o Options) (t target, stop func() error, err error) {
	path, err := exec.LookPath("redis-server")
	if err != nil || !childSupported {
		o.Logger.Warn("no Redis configured and no redis-server installed: everything is kept in memory and lost at exit",
			"fix", "install redis-server, or set redis.url")
		p, err := openInProcess()
		if err != nil {
			return target{}, nil, err
		}
		return p.target(), p.Close, nil
	}
	if t, stop, err = startChild(ctx, path, o); err != nil {
		return t, nil, fmt.Errorf("embedded redis: %w", err)
	}
	return t, stop, nil
}

// Running returns the address of the embedded server that another process runs in a data directory, for
// commands beside it, or "" if none responds. A server whose socket is elsewhere, because the path of its
// directory is too long, is not found.
func Running(ctx context.Context, dir string) string {
	socket, err := filepath.Abs(filepath.Join(dir, "redis", socketName))
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return ""
	}
	_ = conn.Close() // nothing was sent
	return (&url.URL{Scheme: "unix", Path: socket}).String()
}
