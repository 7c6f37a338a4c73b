package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestGlobalFlagsMayComeFirst: flags that every command has, in front of the command.
func TestGlobalFlagsMayComeFirst(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"--url http://x outbox list":       "outbox list --url http://x",
		"--url=http://x --json outbox":     "outbox --url=http://x --json",
		"-c c.yaml serve":                  "serve -c c.yaml",
		"outbox --url x":                   "outbox --url x",
		"--url":                            "--url",
		"--json api submit -- --x":         "api submit --json -- --x",
		"--nothing outbox":                 "--nothing outbox",
		"--set delivery.attempts=5 config": "config --set delivery.attempts=5",
	} {
		if got := strings.Join(commandFirst(strings.Fields(typed)), " "); got != want {
			t.Errorf("%s: %s, want %s", typed, got, want)
		}
	}
}

// TestHelpAndVersionAreWordsToo as in other programs.
func TestHelpAndVersionAreWordsToo(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{"help": "Usage: postroom <command>",
		"help outbox": "outbox cancel", "help token add": "postroom token add", "-v": "postroom"} {
		var out, err bytes.Buffer
		con := &console{out: &out, err: &err}
		code := run(t.Context(), strings.Fields(typed), con)
		if code != exitDone || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d %s %s", typed, code, out.String(), err.String())
		}
	}
}
