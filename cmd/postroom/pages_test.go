package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testkit"
	"github.com/postroom/postroom/internal/testsmtp"
)

// block is a block of commands of a page, with the answer that the page shows for it, if any. Commands that
// start a server, install something or need the Internet stand in blocks of console and aren't run.
var block = regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n(?:\n```json\n(.*?)^```\n)?")

// pagesToRun are the pages whose commands run, with the number of messages that the relay gets from each.
var pagesToRun = map[string]int{"README.md": 1, "docs/quickstart.md": 2, "docs/concepts.md": 1,
	"docs/first-campaign.md": 4, "docs/first-digest.md": 1, "docs/smtp.md": 1, "docs/sending.md": 4,
	"docs/lists.md":    2,
	"docs/segments.md": 0, "docs/api.md": 0, "docs/streams.md": 0, "docs/authentication.md": 0,
	"docs/tracking.md": 1, "docs/delivery.md": 0, "docs/gateways.md": 0, "docs/templates.md": 1}

// TestPagesRunFromTopToBottom pastes the commands of a page into one shell, in order, beside a fresh
// Postroom. A command that fails fails the page, unless the page shows an error as its answer.
func TestPagesRunFromTopToBottom(t *testing.T) {
	t.Parallel()
	for page, messages := range pagesToRun {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../..", page))
			if err != nil {
				t.Fatal(err)
			}
			relay := testsmtp.Start(t, testsmtp.Options{})
			i := fresh(t, relay.URL())
			out, answers := i.paste(t, string(text))
			for _, want := range answers {
				_, rest, _ := strings.Cut(out, "\nBEGIN\n")
				got, rest, _ := strings.Cut(rest, "\nEND\n")
				out = rest
				compareAnswers(t, got, want)
			}
			relay.Wait(messages)
		})
	}
}

// pasteProlog is what a reader's shell has after the quick start.
const pasteProlog = `set -eo pipefail
curl() { command curl --silent --fail-with-body "$@"; }
AUTH="Authorization: Bearer $(cat data/token)"
`

// paste runs the commands of a page and returns what they print, and the answers that the page shows. Each of
// these stands between lines BEGIN and END.
func (i instance) paste(t *testing.T, page string) (out string, answers []string) {
	t.Helper()
	var script strings.Builder
	script.WriteString(pasteProlog)
	for _, found := range block.FindAllStringSubmatch(page, -1) {
		commands, answer := i.addresses.Replace(found[1]), found[2]
		if answer == "" {
			script.WriteString(commands)
			continue
		}
		answers = append(answers, answer)
		if strings.Contains(answer, `"statusCode"`) {
			commands = "set +e\n" + commands + "set -e\n"
		}
		script.WriteString("echo; echo BEGIN\n" + commands + "echo; echo END\n")
	}
	if script.Len() == len(pasteProlog) {
		t.Fatal("the page has no commands")
	}
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Dir, shell.Env = i.dir, append(os.Environ(), "URL="+i.url, "POSTROOM_URL="+i.url, "HOME="+i.dir)
	raw, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return string(raw), answers
}

// compareAnswers fails unless an answer has the fields that a page shows. A page leaves out fields with "…".
func compareAnswers(t *testing.T, got, want string) {
	t.Helper()
	whole := strings.ReplaceAll(want, ",…", "")
	var has, shown map[string]any
	if err := errors.Join(json.Unmarshal([]byte(got), &has), json.Unmarshal([]byte(whole), &shown)); err != nil {
		t.Fatalf("%v\nanswered %s\nbut the page shows %s", err, got, want)
	}
	if whole != want {
		maps.DeleteFunc(has, func(name string, _ any) bool { return shown[name] == nil })
	}
	if !slices.Equal(slices.Sorted(maps.Keys(has)), slices.Sorted(maps.Keys(shown))) ||
		has["statusCode"] != shown["statusCode"] {
		t.Errorf("answered %s\nbut the page shows %s", got, want)
	}
}

// instance is a Postroom that runs in a directory with bin/postroom.
type instance struct {
	dir, url  string
	addresses *strings.Replacer // of the addresses that pages show
}

// fresh runs a Postroom whose default account has a relay.
func fresh(t *testing.T, relay string) instance {
	t.Helper()
	program, err := exec.LookPath("postroom")
	if err != nil {
		t.Fatal(err)
	}
	dir, inlet := t.TempDir(), "127.0.0.1:"+strconv.Itoa(testkit.FreePort(t))
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(dir, "bin", "postroom")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--set", "smtpd.listen="+inlet)
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
	case url := <-address:
		return instance{dir: dir, url: url,
			addresses: strings.NewReplacer("http://127.0.0.1:3000", url, "127.0.0.1:2525", inlet)}
	case err := <-s.ended:
		s.cmd = nil
		t.Fatalf("serve ended: %v\n%s", err, s.log.String())
	case <-time.After(patience):
		t.Fatal("serve did not say where it listens")
	}
	return instance{}
}
