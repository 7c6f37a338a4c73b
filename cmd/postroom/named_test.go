package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var (
	// inCode are the pieces of a page or a program that may be commands: code of Markdown and HTML, and strings.
	inCode = regexp.MustCompile("(?s)```.*?```|`[^`]+`|<code>.*?</code>|<pre.*?</pre>|\"(?:[^\"\\\\\n]|\\\\.)*\"")
	// namedCommand is a command with its flags, up to what ends a command in a shell or a sentence.
	namedCommand = regexp.MustCompile(`(?:^|[^\w./@-])(?:bin/)?postroom((?: (?:--?)?[^\s|;&"'<>()…,]+)+)`)
	word         = regexp.MustCompile(`^[a-z][a-zA-Z-]+$`)
	// goSource are the programs that tell users commands.
	goSource = regexp.MustCompile(`^(ui|server|app|accounts|config|cmd/postroom|outbox|newsletter|digest)/.*\.go$`)
)

// notCommands are what follows the word postroom in code without being a command.
var notCommands = map[string]bool{"runs": true, "is": true, "on": true}

// TestNamedCommandsExist: each command that a document, a page or an error names is one, with these flags.
func TestNamedCommandsExist(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&cli{Commands: built(commands()).Addr().Interface()}, kong.Name("postroom"),
		kong.NoDefaultHelp(), kong.Writers(io.Discard, io.Discard), kong.ExplicitGroups([]kong.Group{}))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		path, _ = filepath.Rel("../..", path)
		if d.IsDir() {
			if d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		source := goSource.MatchString(path) && !strings.HasSuffix(path, "_test.go")
		if !source && !strings.HasSuffix(path, ".md") && !strings.HasPrefix(path, "ui/templates/") ||
			path == "CHANGELOG.md" {
			return nil
		}
		text, err := os.ReadFile(filepath.Join("../..", path))
		for _, code := range inCode.FindAllString(string(text), -1) {
			code = strings.ReplaceAll(code, "\\\n", " ")
			for _, found := range namedCommand.FindAllStringSubmatch(strings.Trim(code, "`\""), -1) {
				words, root := strings.Fields(found[1]), parser.Model.Node
				if words[0] == "api" {
					operations, err := newParser(t.Context(), &console{out: io.Discard, err: io.Discard}, words)
					if err != nil {
						t.Fatal(err)
					}
					root = operations.Model.Node
				}
				if wrong := unknown(root, words); wrong != "" {
					t.Errorf("%s names postroom%s: there is no %s", path, found[1], wrong)
				}
				seen++
			}
		}
		return err
	})
	if err != nil || seen < 300 {
		t.Errorf("%d commands were looked up, %v", seen, err)
	}
}

// unknown returns the first word or flag of a command that doesn't exist.
func unknown(n *kong.Node, words []string) string {
	if notCommands[words[0]] || strings.Contains(words[0], "=") {
		return ""
	}
	var flags []string
	below := true // the next word may be the name of a command
	for _, w := range words {
		w = strings.TrimRight(w, ".:`")
		switch {
		case strings.HasPrefix(w, "--"):
			name, _, _ := strings.Cut(strings.TrimPrefix(w, "--"), "=")
			flags = append(flags, name)
			below = false
		case below && len(n.Children) > 0 && word.MatchString(w):
			child := childOf(n, w)
			if child == nil && n.DefaultCmd == nil {
				return w
			}
			if child == nil {
				below = false
				continue
			}
			n = child
		default:
			below = false
		}
	}
	for _, name := range flags {
		if name != "help" && name != "version" && !hasFlag(n, name) {
			return "--" + name
		}
	}
	return ""
}

// hasFlag reports whether a command, or the default one of its group, has a flag.
func hasFlag(n *kong.Node, name string) bool {
	for ; n != nil; n = n.DefaultCmd {
		for _, f := range n.Flags {
			if f.Name == name || f.Tag.Negatable != "" && "no-"+f.Name == name {
				return true
			}
		}
	}
	return false
}
