package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// completed returns what complete offers for a command line that ends at the cursor.
func completed(t *testing.T, words ...string) (offered []string) {
	t.Helper()
	parser, err := newParser(t.Context(), &console{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complete(parser.Model.Node, words) {
		offered = append(offered, c.text)
	}
	return offered
}

func TestCompletion(t *testing.T) {
	for _, tc := range []struct {
		name, line string // the line ends at the cursor
		want       []string
	}{
		{"a command", "dead", []string{"dead-letter"}},
		{"nothing hidden", "comp", []string{"completion"}},
		{"a command of a group", "outbox re", []string{"retry", "replay"}},
		{"a flag", "outbox list --sta", []string{"--state"}},
		{"a flag of the default command", "outbox --sta", []string{"--state"}},
		{"the value of a flag", "outbox list --lane ", []string{"transactional", "bulk"}},
		{"the value of a flag, begun", "outbox list --state fa", []string{"failed"}},
		{"after =", "outbox list --state=fa", []string{"--state=failed"}},
		{"after =, as bash splits it", "outbox list --state = fa", []string{"failed"}},
		{"right after =, as bash splits it", "outbox list --lane =", []string{"transactional", "bulk"}},
		{"after a flag without a value", "queue --json pau", []string{"pause"}},
		{"after a flag and its value", "queue --url http://x pau", []string{"pause"}},
		{"an argument", "completion f", []string{"fish"}},
		{"no flags after --", "outbox retry -- --sta", nil},
		{"a text of the user's own", "outbox list --tag ", nil},
		{"no such command", "nonsense --sta", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, completed(t, strings.Split(tc.line, " ")...)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestEveryCommandCompletes: a command that completion does not know can't be found with Tab.
func TestEveryCommandCompletes(t *testing.T) {
	parser, err := newParser(t.Context(), &console{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(true) {
		words := strings.Fields(leaf.FullPath())[1:]
		names := words[:0:0]
		for _, w := range words {
			if !strings.HasPrefix(w, "<") && !strings.HasPrefix(w, "[") {
				names = append(names, w)
			}
		}
		got := complete(parser.Model.Node, names)
		if !slices.ContainsFunc(got, named(names[len(names)-1])) {
			t.Errorf("%s: got %v", leaf.FullPath(), got)
		}
		if flags := complete(parser.Model.Node, append(names, "--")); leaf.Name != "complete" &&
			!slices.ContainsFunc(flags, named("--help")) {
			t.Errorf("%s has no --help: %v", leaf.FullPath(), flags)
		}
	}
}

func named(text string) func(completion) bool {
	return func(c completion) bool { return c.text == text }
}

// TestBashCompletes presses Tab in a bash that has read the script.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("bash is not installed; make test installs it")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "postroom")); err != nil { // testscript makes it the program
		t.Fatal(err)
	}
	for _, tc := range []struct{ words, want string }{
		{"postroom outb", "outbox"},
		{"postroom outbox re", "retry replay"},
		{"postroom outbox list --state fa", "failed"},
		{"postroom outbox list --state = fa", "failed"},
		{"postroom outbox list --tag ''", ""},
	} {
		script := `source <(postroom completion bash)
complete -p postroom >/dev/null || exit 1
COMP_WORDS=(` + tc.words + `); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _postroom
echo "${COMPREPLY[*]}"`
		shell := exec.CommandContext(t.Context(), bash, "--norc", "-c", script)
		shell.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", tc.words, err, out)
		}
		if got := strings.TrimSpace(strings.ReplaceAll(string(out), "\n", " ")); got != tc.want {
			t.Errorf("%s<Tab>: got %q, want %q", tc.words, got, tc.want)
		}
	}
}
