package testredis

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// readyWithin is generous: the machine may be running every other test package at the same time.
const readyWithin = 2 * time.Minute

// Process is a redis-server that a test may mistreat.
type Process struct {
	dir      string
	port     int    // on the loopback interface; 0 if it has a socket only
	password string // the default user's; empty if none
	config   string // file to begin with; empty if none
	args     []string
	cmd      *exec.Cmd
	done     chan struct{}
	out      *output
	frozen   atomic.Bool
}

// output collects what the server prints, to be shown when it doesn't start.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Server starts a private redis-server with an append-only file (fsync everysec) and stops it when the test
// ends. The args are added to its command line and win over ours, as in Server(t, "--maxmemory", "20mb"). It
// listens on a unix socket only.
func Server(t testing.TB, args ...string) *Process {
	t.Helper()
	return keep(t, &Process{args: append([]string{"--appendonly", "yes", "--appendfsync", "everysec", "--save",
		""}, args...)})
}

// keep runs a server until the test ends.
func keep(t testing.TB, p *Process) *Process {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.remove)
	return p
}

// start makes a directory short enough for a socket and runs the server in it.
func (p *Process) start() error {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return fmt.Errorf("redis-server is not installed, and these tests run against a real one: apt-get install redis-server")
	}
	var err error
	if p.dir, err = os.MkdirTemp("", "postroom-test-"); err != nil {
		return err
	}
	if err := p.run(); err != nil {
		p.remove()
		return err
	}
	return nil
}

// run starts the server, or starts it again on the same files, and waits until it answers.
func (p *Process) run() error {
	p.out, p.done = &output{}, make(chan struct{})
	p.frozen.Store(false)
	base := []string{"--port", fmt.Sprint(p.port), "--unixsocket", p.Socket(), "--dir", p.dir, "--databases",
		fmt.Sprint(databases), "--save", ""}
	if p.port > 0 {
		base = append(base, "--bind", "127.0.0.1")
	}
	if p.password != "" {
		base = append(base, "--requirepass", p.password)
	}
	if p.config != "" {
		base = append([]string{p.config}, base...)
	}
	p.cmd = exec.Command("redis-server", append(base, p.args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = time.Second
	p.cmd.SysProcAttr = DieWithUs()
	started := make(chan error)
	go func(cmd *exec.Cmd, done chan struct{}) {
		runtime.LockOSThread() // the death signal is tied to the thread that starts the child
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // killed on purpose, mostly
		}
		close(done)
	}(p.cmd, p.done)
	if err := <-started; err != nil {
		return err
	}
	return p.awaitReady()
}

func (p *Process) awaitReady() error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	c := p.dial()
	defer c.Close()
	for {
		err := c.Ping(ctx).Err()
		if err == nil || redis.HasErrorPrefix(err, "NOAUTH") {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("redis-server ended at once:\n%s", p.out)
		case <-ctx.Done():
			return fmt.Errorf("redis-server is not ready after %v: %w\n%s", readyWithin, err, p.out)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// dial is a client for the default user.
func (p *Process) dial() *redis.Client {
	return redis.NewClient(&redis.Options{
		Network: "unix", Addr: p.Socket(), Password: p.password, MaxRetries: -1, DialerRetries: 1,
		DisableIdentity: true,
	})
}

// Client is a plain client of this server and no other, for the default user, who may do everything. It ends
// with the test.
func (p *Process) Client(t testing.TB) *redis.Client {
	c := p.dial()
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Addr is the server's host:port, if it has a port.
func (p *Process) Addr() string { return fmt.Sprintf("127.0.0.1:%d", p.port) }

// Socket is the path of the unix socket the server listens on.
func (p *Process) Socket() string { return filepath.Join(p.dir, "redis.sock") }

// URL is the address to open, database 0.
func (p *Process) URL() string { return "unix://" + p.Socket() }

// Kill ends the server as a crash would (SIGKILL) and waits until it is gone. What it had acknowledged it has
// again after a Restart, unless it was frozen, or keeps no append-only file.
func (p *Process) Kill() {
	if !p.frozen.Load() {
		p.writeAll()
	}
	p.end()
}

// writeAll has the server write everything that it deferred, and defer nothing any more. With fsync everysec
// it defers writes, and answers anyway, for up to two seconds while a slow disk is busy with the last
// second's.
func (p *Process) writeAll() {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	c := p.dial()
	defer c.Close()
	_ = c.ConfigSet(ctx, "appendfsync", "always").Err() // if it can't be set, it has to be killed as it is
}

// end kills the server as it is.
func (p *Process) end() {
	_ = p.cmd.Process.Kill() // gone already: as wanted
	<-p.done
}

// Stop freezes the server (SIGSTOP): connections stay open and nothing is answered.
func (p *Process) Stop() {
	p.frozen.Store(true)
	_ = p.cmd.Process.Signal(syscall.SIGSTOP)
}

// Cont continues a frozen server.
func (p *Process) Cont() {
	p.frozen.Store(false)
	_ = p.cmd.Process.Signal(syscall.SIGCONT)
}

// Restart starts a killed server (a running one is killed first) on the same files, and returns when it
// answers.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	p.Kill()
	if err := p.run(); err != nil {
		t.Fatal(err)
	}
}

// remove ends the server and forgets its files.
func (p *Process) remove() {
	if p.cmd != nil && p.cmd.Process != nil {
		p.end()
	}
	_ = os.RemoveAll(p.dir)
}
