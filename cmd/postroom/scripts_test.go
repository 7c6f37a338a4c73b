package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/postroom/postroom/internal/testdns"
	"github.com/postroom/postroom/internal/testsmtp"
)

// patience is how long a script waits for what must happen: long, since the machine may be busy with other
// tests.
const patience = time.Minute

// relayKey is under which a script's relay is found, lockedKey that which wants a login.
type (
	relayKey  struct{}
	lockedKey struct{}
)

// serviceKey is under which a script's running Postroom is found.
type serviceKey struct{}

// TestScripts runs the scripts of testdata; its README.md lists the commands they have beside the usual ones.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: setup,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": func(ts *testscript.TestScript, _ bool, args []string) { serveScript(t, ts, args) },
			"halt":  haltScript, "mails": mailsScript, "answer": answerScript, "until": untilScript,
			"postroom": postroomScript, "zone": func(ts *testscript.TestScript, _ bool, args []string) {
				zone := testdns.NewZone(t)
				zone.Add(t, args...)
				ts.Setenv("DNS", zone.Addr)
			},
		},
	})
}

// raceAtOnce keeps the race detector from holding each of the many processes for a second before it ends.
const raceAtOnce = "atexit_sleep_ms=0"

// setup gives each script a relay, whose address is $SMTP, and one at $LOCKED that lets nobody in but user
// with the password right.
func setup(env *testscript.Env) error {
	relay, err := testsmtp.New(testsmtp.Options{})
	if err != nil {
		return err
	}
	env.Defer(relay.Close)
	locked, err := testsmtp.New(testsmtp.Options{Username: "user", Password: "right"})
	if err != nil {
		return err
	}
	env.Defer(locked.Close)
	env.Values[relayKey{}], env.Values[lockedKey{}] = relay, locked
	env.Setenv("LOCKED", net.JoinHostPort(locked.Host(), strconv.Itoa(locked.Port())))
	env.Values[serviceKey{}] = &service{}
	env.Setenv("SMTP", relay.URL())
	env.Setenv("NOWHERE", "http://127.0.0.1:1") // where nothing listens
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("GORACE", raceAtOnce)
	return nil
}

// service is a Postroom that a script runs.
type service struct {
	cmd      *exec.Cmd
	log      bytes.Buffer
	stopping chan struct{} // closed when it says that it stops
	ended    chan error
}

// serveScript runs postroom serve with further flags, waits until it listens, and points postroom's commands
// to it.
func serveScript(t *testing.T, ts *testscript.TestScript, args []string) {
	s := ts.Value(serviceKey{}).(*service)
	if s.cmd != nil {
		ts.Fatalf("a Postroom runs already")
	}
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--smtp", ts.Getenv("SMTP"), "--from",
		"Shop <shop@example.com>"}, args...)
	cmd := exec.Command("postroom", args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "TMPDIR=" + ts.Getenv("TMPDIR"),
		"GORACE=" + raceAtOnce}
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	s.cmd, s.stopping, s.ended = cmd, make(chan struct{}), make(chan error, 1)
	address := make(chan string, 1)
	go s.follow(stderr, address)
	ts.Defer(func() {
		if err := s.end(); err != nil {
			t.Errorf("at the end of %s: %v", ts.Name(), err) // a script that has ended can't fail any more
		}
	})
	select {
	case url := <-address:
		ts.Setenv("POSTROOM_URL", url)
	case err := <-s.ended:
		s.cmd = nil
		ts.Fatalf("serve ended: %v\n%s", err, s.log.String())
	case <-time.After(patience):
		ts.Fatalf("serve did not say where it listens")
	}
	token, err := os.ReadFile(filepath.Join(cmd.Dir, "data", "token"))
	ts.Check(err)
	ts.Setenv("POSTROOM_TOKEN", string(bytes.TrimSpace(token)))
}

// follow reads the log until the process ends.
func (s *service) follow(stderr io.Reader, address chan<- string) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		s.log.Write(append(lines.Bytes(), '\n'))
		var line struct {
			Msg string `json:"msg"`
			URL string `json:"url"`
		}
		_ = json.Unmarshal(lines.Bytes(), &line)
		switch line.Msg {
		case "postroom runs":
			address <- line.URL
		case "stopping":
			close(s.stopping)
		}
	}
	s.ended <- s.cmd.Wait()
}

// end tells the process to stop and holds it to do so in order.
func (s *service) end() error {
	if s.cmd == nil {
		return nil
	}
	defer func() { s.cmd = nil }()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		if err != nil {
			return fmt.Errorf("serve ended with %w; its log:\n%s", err, s.log.String())
		}
		return nil
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.ended
		return fmt.Errorf("serve did not stop; its log:\n%s", s.log.String())
	}
}

// endAtOnce tells the process to stop, and once more while it is at it.
func (s *service) endAtOnce(ts *testscript.TestScript) {
	ts.Check(s.cmd.Process.Signal(syscall.SIGTERM))
	late := time.After(patience)
	select {
	case <-s.stopping:
	case err := <-s.ended:
		ts.Fatalf("serve ended after the first signal: %v", err)
	case <-late:
		ts.Fatalf("serve did not begin to stop")
	}
	for { // the first signal may be heard a little before the second one has its usual effect again
		_ = s.cmd.Process.Signal(syscall.SIGINT)
		select {
		case <-s.ended:
			s.cmd = nil
			return
		case <-time.After(100 * time.Millisecond):
		case <-late:
			ts.Fatalf("serve did not end at once")
		}
	}
}

// haltScript tells Postroom to stop and waits until it has: halt, or halt at-once, which tells it twice.
func haltScript(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(serviceKey{}).(*service)
	if len(args) == 1 && args[0] == "at-once" {
		s.endAtOnce(ts)
		return
	}
	ts.Check(s.end())
}

// mailsScript waits until the relay has taken so many mails, and writes the last one to the file mail: mails
// N, or mails N locked.
func mailsScript(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	relay := ts.Value(relayKey{}).(*testsmtp.Server)
	if len(args) > 1 {
		relay = ts.Value(lockedKey{}).(*testsmtp.Server)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	mails, err := relay.WaitContext(ctx, n)
	ts.Check(err)
	if len(mails) != n {
		ts.Fatalf("the relay got %d mails, not %d", len(mails), n)
	}
	if n > 0 {
		ts.Check(os.WriteFile(ts.MkAbs("mail"), mails[n-1].Data, 0o600))
	}
}

// untilScript runs a command again and again until its output matches: until PATTERN postroom ARGUMENT….
func untilScript(ts *testscript.TestScript, _ bool, args []string) {
	want, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for late := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		p := typeIn(ts, args[2:])
		if p.Code == 0 && want.Match(p.Out) {
			_, _ = ts.Stdout().Write(p.Out) // a strings.Builder
			return
		} else if time.Now().After(late) {
			ts.Fatalf("%v never gave %s, but at last %s", args, want, p.Out)
		}
	}
}

// answerScript sets a variable to a field of JSON: answer NAME FILE FIELD [INDEX-OR-FIELD…].
func answerScript(ts *testscript.TestScript, _ bool, args []string) {
	var at any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &at))
	for _, step := range args[2:] {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			ts.Check(err)
			if i >= len(v) {
				ts.Fatalf("no element %d in %d", i, len(v))
			}
			at = v[i]
		default:
			ts.Fatalf("nothing at %s of %v", step, args[2:])
		}
	}
	text, ok := at.(string)
	if !ok {
		ts.Fatalf("%v of %s is %v, not a text", args[2:], args[1], at)
	}
	ts.Setenv(args[0], text)
}
