//go:build unix

package redisdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

const childSupported = true

const (
	lockWait      = 5 * time.Second  // for the server of a process that was just killed to finish writing
	stopWait      = 20 * time.Second // for the server to write everything to disk and end
	restartMin    = 100 * time.Millisecond
	restartMax    = 5 * time.Second
	longLife      = 30 * time.Second // a server that lived this long is restarted without delay again
	readyPoll     = 3 * time.Millisecond
	loadingNotice = 5 * time.Second
	silenceLimit  = 20 * time.Second // for the server to listen; it does before it loads its file
	// maxSocketPath is what the address of a unix socket can hold on every system: 104 bytes with the final
	// zero on BSD and macOS, 108 on Linux.
	maxSocketPath = 103
)

// child is a redis-server run by this process. It listens on a unix socket only, in a directory only this
// user may enter.
type child struct {
	binary  string
	dir     string // its working directory: the append-only file
	socket  string
	tempDir string // holds the socket when the path of dir is too long; else empty
	fsync   string
	memory  int64 // most bytes of data; 0 means any number
	lock    *os.File
	log     *childLog
	slog    *slog.Logger

	mu      sync.Mutex
	process *os.Process // nil between two lives
	closing bool
	served  bool          // it answered once: it is kept alive from then on
	stop    chan struct{} // closed by Close
	done    chan struct{} // closed when keep ends
	failure error         // from a first life that never answered; read after done
}

// startChild takes the data directory, starts the server and waits until it has loaded its file. stop ends
// the server.
func startChild(ctx context.Context, binary string, o Options) (t target, stop func() error, err error) {
	dir, err := filepath.Abs(filepath.Join(o.Dir, "redis"))
	if err != nil {
		return t, nil, err
	}
	c := &child{
		binary: binary, dir: dir, fsync: o.Fsync, memory: o.MaxMemory, slog: o.Logger,
		log:  &childLog{log: o.Logger},
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return t, nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return t, nil, err
	}
	if c.lock, err = lockDir(ctx, dir); err != nil {
		return t, nil, err
	}
	if err := c.placeSocket(); err != nil {
		return t, nil, errors.Join(err, c.lock.Close())
	}
	go c.keep()
	if err := c.awaitReady(ctx); err != nil {
		return t, nil, errors.Join(err, c.Close())
	}
	return c.target(), c.Close, nil
}

// lockDir makes sure that one server at a time writes to dir. The lock belongs to the open file, which the
// server inherits: when this process is killed, the lock stays until its server has written everything and
// ended too.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || !Pause(ctx, readyPoll) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("another postroom is using the data directory %s: stop it, or set data to another directory", filepath.Dir(dir))
	}
	return nil, errors.Join(err, f.Close())
}

// placeSocket puts the socket next to the data, or in a temporary directory if that path is too long for a
// socket.
func (c *child) placeSocket() error {
	c.socket = filepath.Join(c.dir, socketName)
	if len(c.socket) <= maxSocketPath {
		return nil
	}
	var err error
	if c.tempDir, err = os.MkdirTemp("", "postroom-"); err != nil {
		return fmt.Errorf("make a directory for the socket: %w", err)
	}
	c.socket = filepath.Join(c.tempDir, socketName)
	return nil
}

// keep starts the server, and starts it again whenever it dies, until Close. A server that dies before it
// answered at all is not started again. The goroutine stays on one thread, because Linux sends the signal
// that ends the server with us when the thread that started it ends.
func (c *child) keep() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	wait := restartMin
	for {
		born := time.Now()
		err := c.live()
		c.mu.Lock()
		closing, served := c.closing, c.served
		c.mu.Unlock()
		if closing {
			return
		}
		if !served {
			c.failure = fmt.Errorf("%s ended immediately (%v), saying: %s", c.binary, cmp.Or(err,
				errors.New("exit status 0")),
				cmp.Or(c.log.lastWords(), "nothing"))
			return
		}
		if time.Since(born) > longLife {
			wait = restartMin
		}
		c.slog.Error("the embedded redis died and is restarted", "error", err, "last_words", c.log.lastWords(),
			"wait_seconds", wait.Seconds())
		select {
		case <-time.After(wait):
		case <-c.stop:
			return
		}
		wait = min(2*wait, restartMax)
	}
}

// live is one life of the server, from start to end.
func (c *child) live() error {
	cmd := c.command()
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return nil
	}
	err := cmd.Start()
	if err == nil {
		c.process = cmd.Process
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	err = cmd.Wait()
	c.mu.Lock()
	c.process = nil
	c.mu.Unlock()
	return err
}

// command is how the server is called. It reads no configuration file, listens on no port, and refuses writes
// rather than evict.
func (c *child) command() *exec.Cmd {
	cmd := exec.Command(c.binary,
		"--port", "0", "--unixsocket", c.socket, "--unixsocketperm", "700",
		"--dir", c.dir, "--appendonly", "yes", "--appendfsync", c.fsync, "--save", "",
		"--maxmemory", strconv.FormatInt(c.memory, 10), "--maxmemory-policy", "noeviction",
		"--daemonize", "no", "--logfile", "")
	cmd.Dir = c.dir
	cmd.Stdout, cmd.Stderr = c.log, c.log
	cmd.ExtraFiles = []*os.File{c.lock}
	cmd.SysProcAttr = childAttributes()
	cmd.WaitDelay = time.Second // a fork that rewrites the file may hold the output open longer
	return cmd
}

// awaitReady waits until the server answers. A big file takes a while to load: that is said, and waited for
// until ctx ends. A server that doesn't even listen is not waited for.
func (c *child) awaitReady(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: c.socket, MaxRetries: -1, DialerRetries: 1,
		DisableIdentity: true})
	defer client.Close()
	start, noticed := time.Now(), time.Now()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			c.mu.Lock()
			c.served = true
			c.mu.Unlock()
			c.log.ready(true)
			return nil
		}
		if _, listens := errors.AsType[redis.Error](err); !listens && time.Since(start) > silenceLimit {
			return fmt.Errorf("%s doesn't answer: %w", c.binary, err)
		}
		if time.Since(noticed) > loadingNotice {
			noticed = time.Now()
			c.slog.Info("the embedded redis is loading its data", "seconds", time.Since(start).Seconds())
		}
		select {
		case <-c.done:
			return c.failure
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", c.binary, ctx.Err())
		case <-time.After(readyPoll):
		}
	}
}

func (c *child) target() target {
	return target{mode: Embedded, scheme: "unix", UniversalOptions: redis.UniversalOptions{
		Addrs: []string{c.socket}}}
}

// Close stops the server as SHUTDOWN does, everything written and synced, and returns the data directory
// back.
func (c *child) Close() error {
	c.log.ready(false)
	c.mu.Lock()
	c.closing = true
	c.signal(syscall.SIGTERM)
	c.mu.Unlock()
	close(c.stop)
	var err error
	select {
	case <-c.done:
	case <-time.After(stopWait):
		err = fmt.Errorf("the embedded redis did not stop within %v and was killed", stopWait)
		c.mu.Lock()
		c.signal(syscall.SIGKILL)
		c.mu.Unlock()
		<-c.done
	}
	if c.tempDir != "" {
		err = errors.Join(err, os.RemoveAll(c.tempDir))
	}
	return errors.Join(err, c.lock.Close())
}

// signal is called with the lock held.
func (c *child) signal(s os.Signal) {
	if c.process != nil {
		_ = c.process.Signal(s) // it may have died already
	}
}
