package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/bench/rig"
)

// readyWithin is how long a redis-server may take to answer, and a replica to be in step.
const readyWithin = 10 * time.Second

// server is a redis-server on a port of the loopback interface.
type server struct {
	port   string
	cmd    *exec.Cmd
	client *redis.Client
}

// serve starts one in a directory below dir and waits until it answers.
func serve(ctx context.Context, dir, name string, args []string) (*server, error) {
	dir = filepath.Join(dir, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{port: port, client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1})}
	args = append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "",
		"--repl-diskless-sync-delay", "0"}, args...)
	s.cmd = exec.Command("redis-server", args...) //nolint:gosec // the arguments are ours
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	err = await(ctx, "redis-server on port "+port, func() bool { return s.client.Ping(ctx).Err() == nil })
	if err != nil {
		s.kill()
	}
	return s, err
}

// awaitReplica waits until the server has a replica that has got everything.
func (s *server) awaitReplica(ctx context.Context) error {
	return await(ctx, "the replica",
		func() bool { return strings.Contains(s.client.Info(ctx, "replication").Val(), "state=online") })
}

func (s *server) kill() {
	_ = s.client.Close()     // nothing is under way
	_ = s.cmd.Process.Kill() // what it holds is not wanted any more
	_ = s.cmd.Wait()         // killed, as it says
}

// freePort is one that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	return port, l.Close()
}

func await(ctx context.Context, what string, ok func() bool) error {
	err := rig.Until(ctx, readyWithin, 20*time.Millisecond, func() (bool, error) { return ok(), nil })
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", what, err)
	}
	return err
}
