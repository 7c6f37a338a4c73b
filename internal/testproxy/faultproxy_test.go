package testproxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/internal/testproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

// say sends a line over c and waits at most d for its echo.
func say(c net.Conn, line string, d time.Duration) error {
	if _, err := fmt.Fprintln(c, line); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	got, err := bufio.NewReader(c).ReadString('\n')
	if err == nil && got != line+"\n" {
		err = fmt.Errorf("got %q", got)
	}
	return err
}

func dial(t *testing.T, p *testproxy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const (
	enough = 20 * time.Second // for what should work
	brief  = 100 * time.Millisecond
)

func TestCutBreaksWhatIsOpenOnly(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	c := dial(t, p)
	if err := say(c, "hello", enough); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if err := say(c, "anyone?", enough); err == nil {
		t.Error("a cut connection answers")
	}
	if err := say(dial(t, p), "again", enough); err != nil {
		t.Errorf("after the cut: %v", err)
	}
}

func TestDownRefusesUntilUp(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	p.Down()
	if err := say(dial(t, p), "hello", enough); err == nil {
		t.Error("answered while down")
	}
	p.Up()
	if err := say(dial(t, p), "hello", enough); err != nil {
		t.Errorf("after Up: %v", err)
	}
}

func TestHangHoldsBackUntilUp(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	c := dial(t, p)
	p.Hang()
	if err := say(c, "hello", brief); err == nil {
		t.Fatal("answered while hanging")
	}
	p.Up()
	if err := c.SetDeadline(time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); got != "hello\n" {
		t.Errorf("after Up: %q, %v", got, err)
	}
}

// TestHangOnHoldsBackOneClient: the others, and its connections after the end, pass.
func TestHangOnHoldsBackOneClient(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	ann, bob := dial(t, p), dial(t, p)
	for c, name := range map[net.Conn]string{ann: "I am ann", bob: "I am bob"} {
		if err := say(c, name, enough); err != nil {
			t.Fatal(err)
		}
	}
	p.HangOn("am ann")
	if err := say(ann, "hello", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ann, who is held back: %v", err)
	}
	if err := say(dial(t, p), "I am ann", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ann's new connection: %v", err)
	}
	for _, c := range []net.Conn{bob, dial(t, p)} {
		if err := say(c, "I am neither", enough); err != nil {
			t.Errorf("others than ann: %v", err)
		}
	}
	p.CutOff("am ann")
	if err := say(ann, "anyone?", enough); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("ann's old connection: %v, want broken", err)
	}
	if err := say(dial(t, p), "I am ann", enough); err != nil {
		t.Errorf("ann, when it is over: %v", err)
	}
	if err := say(bob, "still here", enough); err != nil {
		t.Errorf("bob, who was never meant: %v", err)
	}
}

// TestUpLetsThoseHeldBackPass: nothing of what they said is lost.
func TestUpLetsThoseHeldBackPass(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	p.HangOn("ann")
	c := dial(t, p)
	if err := say(c, "ann", brief); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("held back: %v", err)
	}
	p.Up()
	if err := c.SetDeadline(time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); got != "ann\n" {
		t.Errorf("after Up: %q, %v", got, err)
	}
}

// TestMuteHoldsAnswersBack: the server hears and does what the client asks, and the client does not learn of
// it.
func TestMuteHoldsAnswersBack(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := testproxy.New(t, "tcp", l.Addr().String())
	p.Mute()
	c := dial(t, p)
	if _, err := fmt.Fprintln(c, "do it"); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if got, err := bufio.NewReader(server).ReadString('\n'); got != "do it\n" {
		t.Fatalf("the server heard %q, %v", got, err)
	}
	if _, err := fmt.Fprintln(server, "done"); err != nil {
		t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(brief)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Fatal("the answer came through")
	}
	p.Up()
	if err := c.SetDeadline(time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	if got, err := bufio.NewReader(c).ReadString('\n'); got != "done\n" {
		t.Errorf("after Up: %q, %v", got, err)
	}
}

func TestSnapBreaksInTheMiddle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := testproxy.New(t, "tcp", l.Addr().String())
	p.Snap(5)
	c := dial(t, p)
	if _, err := io.WriteString(c, "hel"); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if _, err := io.ReadFull(server, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "lo, world"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "lo" || err != nil {
		t.Errorf("the rest: %q, %v, want lo", got, err)
	}
	if err := c.SetDeadline(time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client's end: %v", err)
	}
}

func TestLeadTakesNewConnectionsElsewhere(t *testing.T) {
	p := testproxy.New(t, "tcp", "127.0.0.1:1")
	if err := say(dial(t, p), "hello", enough); err == nil {
		t.Fatal("nobody is there, and somebody answers")
	}
	p.Lead(echo(t))
	if err := say(dial(t, p), "hello", enough); err != nil {
		t.Error(err)
	}
}

func TestDelay(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	p.Delay(brief)
	start := time.Now()
	if err := say(dial(t, p), "hello", enough); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 2*brief { // there and back
		t.Errorf("took %v, want at least %v", took, 2*brief)
	}
}

// TestDelayIsALine: pieces that are sent one behind the other do not wait for each other.
func TestDelayIsALine(t *testing.T) {
	p := testproxy.New(t, "tcp", echo(t))
	p.Delay(brief)
	c := dial(t, p)
	if err := c.SetDeadline(time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	const lines = 200                          // twenty seconds, one after the other
	line := strings.Repeat("x", 40_000) + "\n" // more than goes in one piece
	go func() { _, _ = io.WriteString(c, strings.Repeat(line, lines)) }()
	r := bufio.NewReader(c)
	for i := range lines {
		if got, err := r.ReadString('\n'); err != nil || got != line {
			t.Fatalf("line %d: %d bytes, %v", i, len(got), err)
		}
	}
	if took := time.Since(start); took < 2*brief || took > lines*brief {
		t.Errorf("took %v, want little more than %v", took, 2*brief)
	}
}

// TestEndArrivesAfterWhatWasSaid: a delayed connection that is closed loses nothing.
func TestEndArrivesAfterWhatWasSaid(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := testproxy.New(t, "tcp", l.Addr().String())
	p.Delay(brief)
	c := dial(t, p)
	if _, err := fmt.Fprintln(c, "last words"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if got, err := io.ReadAll(server); string(got) != "last words\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
