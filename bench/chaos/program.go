package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/postroom/postroom/internal/testredis"
)

const (
	readyWithin = 2 * time.Minute // a busy machine
	stopWithin  = 2 * time.Minute
	againAfter  = 200 * time.Millisecond // a process that ended is started again, as a supervisor does
)

// program is a process that can be killed and frozen. If it ends on its own, that is noted and it is started
// again.
type program struct {
	name    string
	command func() *exec.Cmd
	// waits until it can be used, or has ended; may read its standard output
	ready  func(context.Context, *bufio.Reader) error
	ledger *ledger
	log    *os.File // its standard error

	mu      sync.Mutex
	cmd     *exec.Cmd // nil while there is no process
	up      bool      // it was ready
	killed  bool      // it was
	wanted  bool
	changed chan struct{} // closed and replaced with each change of the above
}

func newProgram(dir, name string, l *ledger, command func() *exec.Cmd,
	ready func(context.Context, *bufio.Reader) error) (*program, error) {
	log, err := os.Create(filepath.Join(dir, name+".log")) //nolint:gosec // a directory of our own
	if err != nil {
		return nil, err
	}
	return &program{name: name, command: command, ready: ready, ledger: l, log: log,
		changed: make(chan struct{})}, nil
}

// run keeps the process running while it is wanted, until ctx ends. Then it asks it to stop, and waits.
func (p *program) run(ctx context.Context) {
	defer p.log.Close() //nolint:errcheck // a log
	for {
		p.mu.Lock()
		wanted, changed := p.wanted, p.changed
		p.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if wanted {
			p.live(ctx)
			changed = nil
		}
		select {
		case <-changed:
		case <-time.After(againAfter):
		case <-ctx.Done():
		}
	}
}

// life is one run of the process.
type life struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed at its end
	state *os.ProcessState
}

// live is one run of the process, from its start to its end.
func (p *program) live(ctx context.Context) {
	l := &life{cmd: p.command(), ended: make(chan struct{})}
	l.cmd.Stderr, l.cmd.SysProcAttr = p.log, testredis.DieWithUs()
	out, err := l.cmd.StdoutPipe()
	if err == nil {
		err = p.start(l)
	}
	if err != nil {
		p.ledger.died("%s did not start: %v", p.name, err)
		return
	}
	defer out.Close() //nolint:errcheck // the other end is gone
	getReady, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { <-l.ended; cancel() }()
	if p.ready(getReady, bufio.NewReader(out)) == nil {
		p.set(func() { p.up = true })
	}
	select {
	case <-l.ended:
	case <-ctx.Done():
		p.stop(l)
	}
	p.buried(l, ctx.Err() == nil)
}

// buried notes the end of a process, and says so where nobody asked for it. One that was not ready yet may
// have found Redis away, and is right to give up.
func (p *program) buried(l *life, early bool) {
	p.mu.Lock()
	wanted, up := !p.killed, p.up
	p.mu.Unlock()
	p.set(func() { p.cmd, p.up = nil, false })
	switch {
	case early && wanted && up:
		p.ledger.died("%s ended by itself: %v (%s)", p.name, l.state, p.log.Name())
	case early && wanted:
		p.ledger.count("starts given up, and tried again")
	case !early && !l.state.Success():
		p.ledger.died("%s, told to stop, ended with %v (%s)", p.name, l.state, p.log.Name())
	}
}

// start starts the process. Its death signal is tied to the thread that starts it, so that thread stays until
// its end.
func (p *program) start(l *life) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(l.ended)
		err := l.cmd.Start()
		started <- err
		if err == nil {
			l.state, _ = l.cmd.Process.Wait() // not cmd.Wait, which would take the standard output from its reader
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.set(func() {
		p.cmd, p.killed = l.cmd, false
		if !p.wanted { // killed before it was there
			p.killed = true
			p.signal(syscall.SIGKILL)
		}
	})
	return nil
}

// stop asks the process to end, and kills it when it does not.
func (p *program) stop(l *life) {
	_ = l.cmd.Process.Signal(syscall.SIGCONT) // gone already: as wanted, here and below
	_ = l.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-l.ended:
	case <-time.After(stopWithin):
		p.ledger.died("%s did not stop within %s", p.name, stopWithin)
		_ = l.cmd.Process.Kill()
		<-l.ended
	}
}

// want has the process started.
func (p *program) want() { p.set(func() { p.wanted = true }) }

// kill ends the process as a crash does, until it is wanted again.
func (p *program) kill() {
	p.set(func() {
		p.wanted, p.killed = false, true
		p.signal(syscall.SIGKILL)
	})
}

// freeze stops the process where it stands; thaw continues it.
func (p *program) freeze() { p.set(func() { p.signal(syscall.SIGSTOP) }) }
func (p *program) thaw()   { p.set(func() { p.signal(syscall.SIGCONT) }) }

func (p *program) signal(s syscall.Signal) {
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

func (p *program) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until the process is ready.
func (p *program) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for {
		p.mu.Lock()
		up, changed := p.up, p.changed
		p.mu.Unlock()
		if up {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s, see %s", p.name, readyWithin, p.log.Name())
		}
	}
}
