package apptest

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// Look gets a page. Without an answer the status is 0, and the body says why.
func Look(t *testing.T, url, token string) (status int, body string) {
	t.Helper()
	var headers []string
	if token != "" {
		headers = []string{"Authorization", "Bearer " + token}
	}
	v, err := ask(t, http.DefaultClient, http.MethodGet, url, "", headers...)
	if err != nil {
		return 0, err.Error()
	}
	return v.Status, v.Body
}

// asProcess is the variable that makes this test binary run Postroom instead of tests. It has the settings as
// JSON.
const asProcess = "TEST_POSTROOM_SETTINGS"

// Main runs the tests of a package as testredis.Main does. In a process of Spawn it runs Postroom instead.
func Main(m goleak.TestingM) int {
	if set := os.Getenv(asProcess); set != "" {
		if err := serve(set); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	}
	_ = flag.Set("test.parallel", "3") // more keep a small machine too busy to answer; -parallel still wins
	return testredis.Main(m)
}

// serve runs Postroom as a separate process. It prints its addresses to standard output and stops on SIGTERM.
func serve(settings string) error {
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
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: loaded.Log.Level}))
	a, err := app.New(ctx, &loaded.Config, app.Options{Logger: log})
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n", a.URL(), a.Addrs().Monitor) // a worker has no URL
	return a.Run(ctx)
}

// Process is a Postroom that a test may kill.
type Process struct {
	Cmd     *exec.Cmd
	URL     string // the API's; empty if none
	Monitor string // health and metrics separate from the API; empty if none
	Client  *api.Client
	Ended   chan error
}

const TestToken = "0123456789abcdef0123456789abcdef"

// Spawn starts a Postroom process on an existing Redis and data directory, and waits until it listens.
func Spawn(t *testing.T, set map[string]string) *Process {
	t.Helper()
	set["http.listen"], set["token"], set["log.level"] = "127.0.0.1:0", TestToken, "warn"
	set["documents.store"] = cmp.Or(set["documents.store"], Store)
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	p := &Process{Cmd: exec.Command(os.Args[0]), Ended: make(chan error, 1)} //nolint:gosec // this binary
	p.Cmd.Env = append(os.Environ(), asProcess+"="+string(raw))
	p.Cmd.Stderr = t.Output()
	out, err := p.Cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("Postroom did not start: %v", err)
	}
	go func() { p.Ended <- p.Cmd.Wait() }()
	p.URL, p.Monitor, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	p.Client = api.NewClient(p.URL, TestToken, nil)
	return p
}

// Kill ends the process as a crash would. It has no effect on an ended one.
func (p *Process) Kill() {
	if p.Cmd.ProcessState == nil && p.Ended != nil {
		_ = p.Cmd.Process.Kill() // it may have just ended on its own
		<-p.Ended
		p.Ended = nil
	}
}

// Stop sends the process a signal to end and waits until it has.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.Ended:
		if err != nil {
			t.Errorf("Postroom ended with %v", err)
		}
		p.Ended = nil
	case <-time.After(time.Minute):
		t.Fatal("Postroom did not stop within a minute")
	}
}

// SlowRelay is a relay with a pause for each message, so that a kill hits messages at every stage.
func SlowRelay(t *testing.T, pause time.Duration) *testsmtp.Server {
	return testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "DOT" || c.Verb == "RCPT" {
			return testsmtp.Action{Delay: pause}
		}
		return testsmtp.Action{}
	}})
}

func SettingsFor(t *testing.T, redis string, relay *testsmtp.Server) map[string]string {
	return map[string]string{
		"redis.url": redis, "data": filepath.Join(t.TempDir(), "data"), "smtp": relay.URL(),
		"from": "app@example.com", "delivery.lease": "4s",
	}
}

// Gate delays a relay's first answer to a command until it is opened.
type Gate struct {
	verb string
	mu   sync.Mutex
	seen bool
	wait chan struct{}
	once sync.Once
}

func NewGate(verb string) *Gate { return &Gate{verb: verb, wait: make(chan struct{})} }

func (g *Gate) Respond(c testsmtp.Command) testsmtp.Action {
	if c.Verb != g.verb {
		return testsmtp.Action{}
	}
	g.mu.Lock()
	first := !g.seen
	g.seen = true
	g.mu.Unlock()
	if first {
		<-g.wait
	}
	return testsmtp.Action{}
}

func (g *Gate) Open() { g.once.Do(func() { close(g.wait) }) }

func (g *Gate) Reached() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

// SpawnAs is Spawn with a role. A worker gets a listener for health and metrics.
func SpawnAs(t *testing.T, set map[string]string, role string) *Process {
	t.Helper()
	set = maps.Clone(set)
	set["role"] = role
	if role == "worker" {
		set["monitor.listen"] = "127.0.0.1:0"
	}
	return Spawn(t, set)
}
