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

// stopWithin is how long a process may take to stop before it is killed. Redis writes what is left in its
// buffers.
const stopWithin = time.Minute

// Process is a program that runs until it is stopped.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Start starts a program. What it says on standard error goes to a file; its standard output is the caller's
// to read.
func Start(cmd *exec.Cmd, logFile string) (*Process, *bufio.Reader, error) {
	log, err := os.Create(logFile) //nolint:gosec // in a directory of the caller's own
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = log
	// an interrupt is for this program, which then stops the others in order
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
		_, _ = cmd.Process.Wait() // not cmd.Wait, which would take the standard output from its reader
		_ = log.Close()
		close(p.ended)
	}()
	return p, bufio.NewReader(out), nil
}

// startPostroom starts a Postroom, and waits until it is ready. What it says goes to a file named after its
// role in a directory, which is where its data goes as well.
func startPostroom(role, dir string, settings map[string]string) (p *Process, address string, err error) {
	set := map[string]string{"role": role, "data": filepath.Join(dir, role), "http.listen": "127.0.0.1:0",
		"log.level": "warn"}
	for key, value := range settings {
		set[key] = value
	}
	log := filepath.Join(dir, role+".log")
	p, out, err := Start(Command(set), log)
	if err != nil {
		return nil, "", err
	}
	if address, err = Address(out); err != nil {
		p.Stop()
		return nil, "", fmt.Errorf("postroom as %s did not start, %s says why: %w", role, log, err)
	}
	return p, address, nil
}

// RedisCommand is a redis-server as Postroom's embedded one runs, with its files and its socket in a
// directory, and more arguments.
func RedisCommand(dir string, more ...string) (cmd *exec.Cmd, socket string) {
	socket = filepath.Join(dir, "s")
	args := []string{
		"--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--maxmemory-policy", "noeviction",
		"--logfile", filepath.Join(dir, "redis.txt"),
	}
	return exec.Command("redis-server", append(args, more...)...), socket //nolint:gosec // our own words
}

// Stop asks the process to end, and kills it when it does not.
func (p *Process) Stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already: as wanted
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// ticks is how many units of CPU time /proc counts in a second, on every Linux.
const ticks = 100

// CPU is the CPU time that the process has used; 0 where there is no /proc.
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

// Resident is the memory that the process has, and the most it had, in bytes; 0 where there is no /proc.
func (p *Process) Resident() (now, most int64) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kb, _ := strconv.ParseInt(f[1], 10, 64)
		switch f[0] {
		case "VmRSS:":
			now = kb << 10
		case "VmHWM:":
			most = kb << 10
		}
	}
	return now, most
}
