package rig

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopWithin is how long a process may take to stop before it is killed. Redis writes its buffers first.
const stopWithin = time.Minute

// Process is a program that runs until it is stopped.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Self is this process. It cannot be stopped.
func Self() *Process { return &Process{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}} }

// Start starts a program. Its standard error goes to a file; the caller reads its standard output.
func Start(cmd *exec.Cmd, logFile string) (*Process, *bufio.Reader, error) {
	log, err := os.Create(logFile) //nolint:gosec // in a directory of the caller's own
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = log
	// An interrupt goes to this program alone, which then stops the others in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_, _ = cmd.Process.Wait() // not cmd.Wait, which closes the standard output
		_ = log.Close()
		close(p.ended)
	}()
	return p, bufio.NewReader(out), nil
}

// RedisCommand is a redis-server as Postroom's embedded one runs, with its files and its socket in dir, and
// with more arguments.
func RedisCommand(dir string, more ...string) (cmd *exec.Cmd, socket string) {
	socket = filepath.Join(dir, "s")
	args := []string{
		"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--maxmemory-policy", "noeviction", "--logfile", filepath.Join(dir, "redis.txt"),
	}
	return exec.Command("redis-server", append(args, more...)...), socket //nolint:gosec // our own words
}

// Stop asks the process to end, and kills it if it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails if it has ended already
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// Memory is the memory that the process occupies now, in bytes; 0 without /proc.
func (p *Process) Memory() int {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	fields := strings.Fields(string(raw))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}

// ticks is the number of units of CPU time in a second of /proc, on every Linux.
const ticks = 100

// CPU is the CPU time that the process has used; 0 without /proc.
func (p *Process) CPU() time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / ticks
}
