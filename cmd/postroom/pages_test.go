package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testsmtp"
)

// block is a block of commands of a page, with the answer that it shows, if any.
var block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:\n```json\n(.*?)^```\n)?")

// TestFirstPagesRunFromTopToBottom pastes the commands of the pages for newcomers into a shell, in order,
// each page beside a fresh Postroom. Commands that start one, and the check of relay and DNS, are left out.
func TestFirstPagesRunFromTopToBottom(t *testing.T) {
	t.Parallel()
	for page, mails := range map[string]int{"README.md": 1, "docs/quickstart.md": 2, "docs/concepts.md": 1,
		"docs/first-campaign.md": 4} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../..", page))
			if err != nil {
				t.Fatal(err)
			}
			relay := testsmtp.Start(t, testsmtp.Options{})
			dir, url := fresh(t, relay.URL())
			script := "set -e\ncurl() { command curl -sS --fail-with-body \"$@\"; }\n"
			var answers []string
			for _, found := range block.FindAllStringSubmatch(string(text), -1) {
				if strings.Contains(found[1], "make ") {
					continue
				}
				commands := strings.ReplaceAll(found[1], "http://127.0.0.1:3000", url)
				commands = strings.ReplaceAll(commands, "bin/postroom doctor\n", "")
				if found[2] != "" {
					commands = "echo BEGIN\n" + commands + "echo\necho END\n"
					answers = append(answers, found[2])
				}
				script += commands
			}
			shell := exec.CommandContext(t.Context(), "bash", "-c", script)
			shell.Dir, shell.Env = dir, append(os.Environ(), "POSTROOM_URL="+url, "HOME="+dir)
			out, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, want := range answers {
				_, rest, _ := strings.Cut(string(out), "BEGIN\n")
				got, rest, _ := strings.Cut(rest, "END\n")
				if out = []byte(rest); fieldsOf(t, got) != fieldsOf(t, want) {
					t.Errorf("answered %s\nbut the page shows %s", got, want)
				}
			}
			relay.Wait(mails)
		})
	}
}

// fieldsOf returns the names of the fields of an answer.
func fieldsOf(t *testing.T, answer string) string {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(answer), &fields); err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	return strings.Join(slices.Sorted(maps.Keys(fields)), " ")
}

// fresh runs a Postroom in a directory with bin/postroom, and returns both.
func fresh(t *testing.T, relay string) (dir, url string) {
	t.Helper()
	program, err := exec.LookPath("postroom")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "bin", "postroom")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "POSTROOM_SMTP="+relay, "POSTROOM_FROM=app@example.com",
		"GORACE="+raceAtOnce)
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
	t.Cleanup(func() {
		if err := s.end(); err != nil {
			t.Error(err)
		}
	})
	select {
	case url = <-address:
	case err := <-s.ended:
		s.cmd = nil
		t.Fatalf("serve ended: %v\n%s", err, s.log.String())
	case <-time.After(patience):
		t.Fatal("serve did not say where it listens")
	}
	return dir, url
}
