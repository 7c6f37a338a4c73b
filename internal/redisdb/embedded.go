package redisdb

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
)

// socketName is the embedded server's socket, in its data directory.
const socketName = "redis.sock"

// serverPrograms are the programs that can be the embedded server, in order of preference.
var serverPrograms = []string{"redis-server", "valkey-server"}

// errNoServer says how to get a Redis.
var errNoServer = errors.New(`redis-server isn't installed, and Postroom keeps its mail in Redis. Install it:
  apt install redis-server   on Debian and Ubuntu
  dnf install valkey         on Fedora (redis before Fedora 41)
  apk add redis              on Alpine
  brew install redis         on macOS
Or use a Redis that runs elsewhere: set redis.url (POSTROOM_REDIS_URL) to its address`)

// ServerProgram returns the path of the program that runs as the embedded server. Its error says how to
// install one.
func ServerProgram() (string, error) {
	if !childSupported {
		return "", errors.New("a Redis of its own isn't supported on this system: set redis.url (POSTROOM_REDIS_URL)")
	}
	for _, name := range serverPrograms {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, name := range serverPrograms {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return "", fmt.Errorf("%s can't be run: it isn't executable (%s)", path, info.Mode())
			}
		}
	}
	return "", errNoServer
}

// openEmbedded starts our own Redis.
func openEmbedded(ctx context.Context, o Options) (t target, stop func() error, err error) {
	path, err := ServerProgram()
	if err != nil {
		return target{}, nil, err
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
