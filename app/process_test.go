package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/event"
	"github.com/postroom/postroom/app"
	"github.com/postroom/postroom/config"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/testredis"
	"github.com/postroom/postroom/internal/testsmtp"
)

// asProcess is the variable that makes this test binary run Postroom instead of tests. It has the settings as
// JSON.
const asProcess = "TEST_POSTROOM_SETTINGS"

func TestMain(m *testing.M) {
	if set := os.Getenv(asProcess); set != "" {
		if err := serve(set); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	_ = flag.Set("test.parallel", "3") // more keep a small machine too busy to answer; -parallel still wins
	os.Exit(testredis.Main(browsing{m}))
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

// process is a Postroom that a test may kill.
type process struct {
	cmd     *exec.Cmd
	url     string // of the API; empty: none
	monitor string // of health and metrics separate from the API; empty: none
	client  *api.Client
	ended   chan error
}

const testToken = "0123456789abcdef0123456789abcdef"

// spawn starts a Postroom process on an existing Redis and data directory, and waits until it listens.
func spawn(t *testing.T, set map[string]string) *process {
	t.Helper()
	set["http.listen"], set["token"], set["log.level"] = "127.0.0.1:0", testToken, "warn"
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), ended: make(chan error, 1)} //nolint:gosec // this binary
	p.cmd.Env = append(os.Environ(), asProcess+"="+string(raw))
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("Postroom did not start: %v", err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	p.url, p.monitor, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	p.client = api.NewClient(p.url, testToken, nil)
	return p
}

// kill ends the process as a crash would. It has no effect on an ended one.
func (p *process) kill() {
	if p.cmd.ProcessState == nil && p.ended != nil {
		_ = p.cmd.Process.Kill() // it may have just ended by itself
		<-p.ended
		p.ended = nil
	}
}

// stop sends the process a signal to end and waits until it has.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("Postroom ended with %v", err)
		}
		p.ended = nil
	case <-time.After(time.Minute):
		t.Fatal("Postroom did not stop within a minute")
	}
}

// tally is what a relay got, and what the events say about it.
type tally struct {
	copies   map[string]int  // deliveries to each recipient
	terminal map[string]int  // messageSent and messageFailed events of each recipient
	doubted  map[string]bool // recipients of messages sent again after a doubtful attempt
}

// take counts the deliveries at the relay and reads the whole event stream.
func take(t *testing.T, relay *testsmtp.Server, db *redisdb.DB) tally {
	t.Helper()
	c := tally{copies: map[string]int{}, terminal: map[string]int{}, doubted: map[string]bool{}}
	for _, m := range relay.Messages() {
		for _, to := range m.To {
			c.copies[to]++
		}
	}
	var entries []redis.XMessage
	for p := range db.Partitions() {
		more, err := db.Client().XRange(t.Context(), redisdb.Key(p, "events"), "-", "+").Result()
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, more...)
	}
	for _, entry := range entries {
		e, err := event.Parse([]byte(entry.Values["e"].(string)))
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			event.Message
			InDoubt bool `json:"inDoubt"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		for _, to := range data.Envelope.To {
			if e.Type == event.MessageSent || e.Type == event.MessageFailed || e.Type == event.MessageCancelled {
				c.terminal[to]++
			}
			c.doubted[to] = c.doubted[to] || data.InDoubt
		}
	}
	return c
}

// check checks the guarantees: everybody gets the mail, nobody gets it twice unless in doubt, and everybody
// has one terminal event.
func (c tally) check(t *testing.T, accepted []string) {
	t.Helper()
	twice := 0
	for _, to := range accepted {
		switch n := c.copies[to]; {
		case n == 0:
			t.Errorf("%s: accepted, never delivered", to)
		case n > 1 && !c.doubted[to]:
			t.Errorf("%s: delivered %d times without any doubt", to, n)
		case n > 1:
			twice++
		}
		if c.terminal[to] != 1 {
			t.Errorf("%s: %d last words, want 1", to, c.terminal[to])
		}
	}
	t.Logf("%d accepted, %d delivered twice, all of them marked in doubt", len(accepted), twice)
}

// slowRelay is a relay with a pause for each message, so that a kill hits messages at every stage.
func slowRelay(t *testing.T, pause time.Duration) *testsmtp.Server {
	return testsmtp.Start(t, testsmtp.Options{Respond: func(c testsmtp.Command) testsmtp.Action {
		if c.Verb == "DOT" || c.Verb == "RCPT" {
			return testsmtp.Action{Delay: pause}
		}
		return testsmtp.Action{}
	}})
}

func settingsFor(t *testing.T, redis string, relay *testsmtp.Server) map[string]string {
	return map[string]string{
		"redis.url": redis, "data": filepath.Join(t.TempDir(), "data"), "smtp": relay.URL(),
		"from": "app@example.com", "delivery.lease": "4s",
	}
}
