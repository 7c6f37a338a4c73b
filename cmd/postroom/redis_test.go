package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// beside returns a command of postroom in an empty folder, with a PATH that has nothing but these programs:
// names and scripts; a name without a script is the real redis-server.
func beside(t *testing.T, programs map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	real, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal(err)
	}
	path, work := t.TempDir(), t.TempDir()
	for name, script := range programs {
		if script == "" {
			err = os.Symlink(real, filepath.Join(path, name))
		} else {
			err = os.WriteFile(filepath.Join(path, name), []byte(script), 0o700) //nolint:gosec // a program
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("postroom", args...)
	cmd.Dir, cmd.Env = work, []string{"PATH=" + path, "HOME=" + work, "TMPDIR=" + work, "GORACE=" + raceAtOnce}
	return cmd
}

// TestWithoutRedisItSaysHowToGetOne: one message, exit code 1, and nothing is left behind.
func TestWithoutRedisItSaysHowToGetOne(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"serve", "demo", "doctor"} {
		cmd := beside(t, nil, command)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: %v", command, err)
		}
		for _, want := range []string{"redis-server isn't installed", "apt install redis-server",
			"dnf install valkey",
			"apk add redis", "brew install redis", "redis.url (POSTROOM_REDIS_URL)"} {
			if strings.Count(string(out), want) != 1 {
				t.Errorf("%s: %q isn't said once: %s", command, want, out)
			}
		}
		if left, err := os.ReadDir(cmd.Dir); len(left) > 0 || err != nil {
			t.Errorf("%s leaves %v behind, %v", command, left, err)
		}
		if command != "doctor" && !strings.HasPrefix(string(out), "postroom: redis-server isn't installed") {
			t.Errorf("%s begins with something else: %s", command, out)
		}
	}
	if out, err := beside(t, nil, "config").CombinedOutput(); err != nil {
		t.Errorf("config: %v: %s", err, out)
	}
}

// TestBrokenRedisServerSpeaksForItself: its words are the error, and nothing hangs.
func TestBrokenRedisServerSpeaksForItself(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"#!/bin/sh\necho 'error while loading shared libraries: libssl.so.3' >&2\nexit 127\n": "libssl.so.3",
		"#!/bin/sh\nexec /bin/sleep 600\n": "doesn't answer",
	} {
		for _, command := range []string{"serve", "demo"} {
			var out bytes.Buffer
			cmd := beside(t, map[string]string{"redis-server": script}, command, "--listen", "127.0.0.1:0")
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			late.Stop()
			if text := out.String(); cmd.ProcessState.ExitCode() != 1 || !strings.Contains(text, want) ||
				strings.Count(text, "redis-server") != 1 {
				t.Errorf("%s: %v: %s", command, cmd.ProcessState, text)
			}
		}
	}
}

// TestValkeyIsEnough: where only Valkey is installed, Postroom runs with it.
func TestValkeyIsEnough(t *testing.T) {
	t.Parallel()
	cmd := beside(t, map[string]string{"valkey-server": ""}, "serve", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &service{cmd: cmd, stopping: make(chan struct{}), ended: make(chan error, 1)}
	address := make(chan string, 1)
	go s.follow(stderr, address)
	select {
	case <-address:
	case err := <-s.ended:
		t.Fatalf("serve ended: %v\n%s", err, s.log.String())
	case <-time.After(patience):
		_ = cmd.Process.Signal(syscall.SIGKILL)
		t.Fatal("serve did not say where it listens")
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}
