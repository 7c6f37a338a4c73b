package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
)

// asPostroom names the variable that makes this program run as Postroom: the settings, as JSON.
const asPostroom = "BACKLOG_POSTROOM_SETTINGS"

// stopWithin is how long a process may take to stop before it is killed. Redis writes what is left in its buffers.
const stopWithin = time.Minute

// servePostroom is what a process that was started so does: it tells its address on standard output, and stops on SIGTERM.
func servePostroom(settings string) error {
	var set map[string]string
	if err := json.Unmarshal([]byte(settings), &set); err != nil {
		return err
	}
	loaded, err := config.Load(config.Sources{Flags: set})
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	a, err := app.New(ctx, &loaded.Config, app.Options{Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: loaded.Log.Level}))})
	if err != nil {
		return err
	}
	fmt.Println(a.URL())
	return a.Run(ctx)
}

// process is a program that runs until the house is closed.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program. What it says on standard error goes to a file in the house's directory.
func (h *house) start(name string, cmd *exec.Cmd) (*process, *bufio.Reader, error) {
	log, err := os.Create(filepath.Join(h.dir, name+".log")) //nolint:gosec // a directory of our own
	if err != nil {
		return nil, nil, err
	}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for this program, which then stops the others in order
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	p := &process{cmd: cmd, ended: make(chan struct{})}
	go func() {
		_, _ = cmd.Process.Wait() // not cmd.Wait, which would take the standard output from its reader
		_ = log.Close()
		close(p.ended)
	}()
	h.onClose(p.stop)
	return p, bufio.NewReader(out), nil
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // gone already: as wanted
	select {
	case <-p.ended:
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

// postroom starts a Postroom and waits until it tells its address, which is empty for a worker.
func (h *house) postroom(role string, more map[string]string) (*process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	set := map[string]string{
		"role": role, "redis.url": "unix://" + h.socket, "data": filepath.Join(h.dir, role), "http.listen": "127.0.0.1:0", "token": token,
		"secret": secret, "smtp": h.sink.URL(), "from": "Example Shop <shop@example.com>", "log.level": "warn",
	}
	for key, value := range more {
		set[key] = value
	}
	raw, err := json.Marshal(set)
	if err != nil {
		return nil, "", err
	}
	cmd := exec.Command(self) //nolint:gosec // this program
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "POSTROOM_") { // the settings of whoever runs this are not those of its processes
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, asPostroom+"="+string(raw))
	p, out, err := h.start(role, cmd)
	if err != nil {
		return nil, "", err
	}
	url, err := out.ReadString('\n')
	if err != nil {
		return nil, "", fmt.Errorf("postroom as %s did not start, %s says why: %w", role, filepath.Join(h.dir, role+".log"), err)
	}
	return p, strings.TrimSpace(url), nil
}
