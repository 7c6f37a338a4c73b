package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/config"
)

func TestFile(t *testing.T) {
	l := load(t, config.Sources{File: write(t, "config.yaml", `
# a comment
workers: {submit: 7, bulk: 8}
delivery.attempts: 4
delivery:
  retry:
    base: &wait 3s
    max: *wait
    schedule:
      - 1m
      - 2m
smtp:            # nothing: as if it weren't there
webhooks:
message:
  maxSize: 1000000
`)})
	if l.Workers.Submit != 7 || l.Workers.Bulk != 8 || l.Delivery.Attempts != 4 ||
		l.Message.MaxSize != 1_000_000 {
		t.Errorf("got %+v", l.Config)
	}
	want := config.Retry{Base: 3 * time.Second, Factor: 2, Jitter: 0.2, Max: 3 * time.Second,
		Schedule: []time.Duration{time.Minute, 2 * time.Minute}}
	if diff := cmp.Diff(want, l.Delivery.Retry); diff != "" {
		t.Error(diff)
	}
	if got := row(t, l, "delivery.retry.schedule").Value; got != "1m, 2m" {
		t.Errorf("schedule is shown as %q", got)
	}
	if got := row(t, l, "smtp").Source; got != "default" {
		t.Errorf("smtp without a value comes from %q, want default", got)
	}
}

func TestWrongFiles(t *testing.T) {
	rows := []struct{ name, content, want string }{
		{"misspelt key", "delivery:\n  atempts: 5\n",
			"delivery.atempts: is not a setting; did you mean delivery.attempts? (FILE:2)"},
		{"misspelt group", "delivry:\n  attempts: 5\n",
			"delivry: is not a setting; did you mean delivery? (FILE:1)"},
		{"other case", "deadletters:\n  max: 5\n",
			"deadletters: is not a setting; did you mean deadLetters? (FILE:1)"},
		{"snake case", "message:\n  max_size: 5MB\n",
			"message.max_size: is not a setting; did you mean message.maxSize? (FILE:2)"},
		{"wrong place", "attempts: 5\n",
			"attempts: is not a setting; did you mean delivery.attempts or digest.attempts or webhooks.attempts? (FILE:1)"},
		{"nothing like it", "colour: blue\n", "colour: is not a setting (FILE:1)"},
		{"wrong value", "\nworkers:\n  submit: many\n",
			`workers.submit: "many" is not a whole number; write a whole number, from 1 to 10000 (FILE:3)`},
		{"twice", "data: a\ndata: b\n", "data: is set twice; the other is FILE:1 (FILE:2)"},
		{"twice, nested and dotted", "log.level: warn\nlog:\n  level: info\n",
			"log.level: is set twice; the other is FILE:1 (FILE:3)"},
		{"value for a group", "http: 3000\n",
			"http: is a group of settings, not a setting; write its settings below it, indented (FILE:1)"},
		{"group for a value", "data:\n  dir: x\n", "data: is a setting, not a group; write one value (FILE:2)"},
		{"list for a value", "data: [a, b]\n", "data: takes one value, not a list (FILE:1)"},
		{"nested list", "delivery.retry.schedule: [[1m], 2m]\n",
			"delivery.retry.schedule: takes a flat list of values (FILE:1)"},
		{"list at the top", "- a\n", "must be a mapping of settings, such as data: ./data (FILE)"},
		{"two documents", "data: a\n---\ndata: b\n",
			"must contain one YAML document; remove the line --- and everything after it (FILE)"},
		{"tab", "http:\n\tlisten: x\n", "is not YAML: line 2: found character that cannot start any token (FILE)"},
		{"password with star", "smtp: *hidden\n",
			"is not YAML: a value begins with * or &, which means something else in YAML; put it in quotes (FILE)"},
		{"password with exclamation mark", "secret: !hidden\n",
			"secret: begins with !, which means something else in YAML; put the value in quotes (FILE:1)"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			file := write(t, "config.yaml", r.content)
			got := strings.ReplaceAll(strings.Join(faults(t, config.Sources{File: file}), "\n"), file, "FILE")
			if diff := cmp.Diff(r.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	named := write(t, "named.yaml", "delivery.attempts: 2\n")
	other := write(t, "other.yaml", "delivery.attempts: 3\n")
	if got := load(t, config.Sources{}); got.File != "" || got.Delivery.Attempts != 10 {
		t.Errorf("without a file: read %q", got.File)
	}
	if err := os.WriteFile("config.yaml", []byte("delivery.attempts: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rows := []struct {
		name    string
		sources config.Sources
		file    string
		want    int
	}{
		{"config.yaml of the working directory", config.Sources{}, "config.yaml", 1},
		{"POSTROOM_CONFIG", config.Sources{Env: []string{"POSTROOM_CONFIG=" + other}}, other, 3},
		{"flag before POSTROOM_CONFIG", config.Sources{File: named, Env: []string{"POSTROOM_CONFIG=" + other}},
			named, 2},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			l := load(t, r.sources)
			if l.File != r.file || l.Delivery.Attempts != r.want {
				t.Errorf("read %q with attempts %d, want %q with %d", l.File, l.Delivery.Attempts, r.file, r.want)
			}
		})
	}
}

func TestNamedFileMustExist(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent.yaml")
	rows := []struct {
		name    string
		sources config.Sources
		want    string
	}{
		{"flag", config.Sources{File: absent}, "the configuration file " + absent +
			" can't be read: no such file or directory (flag --config)"},
		{"environment", config.Sources{Env: []string{"POSTROOM_CONFIG=" + absent}}, "the configuration file " +
			absent + " can't be read: no such file or directory (POSTROOM_CONFIG)"},
		{"endless", config.Sources{File: "/dev/zero"},
			"the configuration file /dev/zero can't be read: it is larger than 1048576 bytes (flag --config)"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			if diff := cmp.Diff([]string{r.want}, faults(t, r.sources)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzFile looks for a file that panics, and for a secret that shows in an answer or in the table.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"delivery:\n  attempts: 5\n", "a: &a\n  b: *a\n", "secret: SECRET\n", "http: [1, {a: b}]\n",
		"delivery.retry.schedule: [1m, *x]\n",
		"? [a]\n: b\n", "smtp: \"smtp://u:SECRET@h\"\n", "<<: {data: x}\n", "---\n---\n", "\xff\xfe",
		"data: !!binary aGk=\n", "null\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Sources{File: path})
		if err != nil {
			if _, ok := errors.AsType[*config.Invalid](err); !ok || err.Error() == "" {
				t.Fatalf("error is %T: %v", err, err)
			}
			return
		}
		var shown strings.Builder
		if err := l.Print(&shown); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{l.Secret.Reveal(), l.Token.Reveal()} {
			if len(secret) >= 16 && !strings.ContainsAny(secret, "*") && strings.Contains(shown.String(), secret) {
				t.Fatalf("secret shown:\n%s", shown.String())
			}
		}
	})
}
