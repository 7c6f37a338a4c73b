package smtpsend_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testport"
	"github.com/postroom/postroom/smtpsend"
)

// sink starts smtp-sink on a port of its own. What it accepts is stored, a file a message, in the directory it returns.
func sink(t *testing.T, flags ...string) (smtpsend.Relay, string) {
	t.Helper()
	port := testport.Free(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	args := append(flags, "-d", filepath.Join(dir, "%s."), "127.0.0.1:"+strconv.Itoa(port), "100")
	if os.Geteuid() == 0 {
		args = append([]string{"-u", "root"}, args...)
	}
	cmd := exec.Command("smtp-sink", args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	relay := smtpsend.Relay{Host: "127.0.0.1", Port: port}
	eventually(t, "smtp-sink listens", func() bool {
		conn, err := net.Dial("tcp", net.JoinHostPort(relay.Host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
	return relay, dir
}

// stored counts the messages smtp-sink has kept in full.
func stored(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), "world") {
			n++
		}
	}
	return n
}

func TestSMTPSink(t *testing.T) {
	for _, row := range []struct {
		name    string
		flags   []string
		stored  bool
		inDoubt bool
		code    int
		verdict smtpsend.Verdict // empty: delivered
	}{
		{name: "accepts", stored: true},
		{name: "accepts without pipelining", flags: []string{"-p"}, stored: true},
		{name: "accepts without ESMTP", flags: []string{"-e"}, stored: true},
		{name: "hangs up after the dot", flags: []string{"-q", "."}, stored: true, inDoubt: true, verdict: smtpsend.Soft},
		{name: "421 after the dot", flags: []string{"-Q", "."}, code: 421, verdict: smtpsend.Soft},
		{name: "4xx at the dot", flags: []string{"-r", "."}, code: 450, verdict: smtpsend.Soft},
		{name: "5xx at the dot", flags: []string{"-f", "."}, code: 500, verdict: smtpsend.Policy},
		{name: "hangs up at RCPT", flags: []string{"-q", "RCPT"}, verdict: smtpsend.Soft},
		{name: "421 at MAIL", flags: []string{"-Q", "MAIL"}, code: 421, verdict: smtpsend.Soft},
		{name: "4xx at RCPT", flags: []string{"-r", "RCPT"}, code: 450, verdict: smtpsend.Soft},
		{name: "5xx at DATA", flags: []string{"-f", "DATA"}, code: 500, verdict: smtpsend.Policy},
		{name: "hangs up at DATA", flags: []string{"-q", "DATA"}, verdict: smtpsend.Soft},
	} {
		t.Run(row.name, func(t *testing.T) {
			relay, dir := sink(t, row.flags...)
			sender := newSender(t, smtpsend.Options{Timeout: 10 * time.Second})
			_, err := sender.Send(t.Context(), relay, mail("b@example.org"))
			if row.verdict == "" {
				if err != nil {
					t.Fatal(err)
				}
			} else if e := failure(t, err); e.Verdict != row.verdict || e.InDoubt != row.inDoubt || e.Code != row.code {
				t.Errorf("%s, in doubt %v, code %d: %v", e.Verdict, e.InDoubt, e.Code, e)
			}
			if row.stored {
				eventually(t, "the message is stored", func() bool { return stored(t, dir) == 1 })
			}
		})
	}
}
