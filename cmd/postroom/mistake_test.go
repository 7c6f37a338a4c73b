package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
)

// typed runs a command line that fails before anything is tried, and returns what it says and the exit code.
func typed(t *testing.T, line string) (said string, code int) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), strings.Fields(line), &console{in: strings.NewReader(""), out: &out, err: &err})
	return strings.TrimSuffix(err.String(), "\n"), code
}

// TestMistakesSayWhatIsRight: each ends with code 2, and nothing was tried.
func TestMistakesSayWhatIsRight(t *testing.T) {
	for line, want := range map[string]string{
		"serve --role boss": `--role must be one of all, api or worker, not "boss"; see: postroom serve --help`,
		"completion csh":    `<shell> must be one of bash, zsh or fish, not "csh"; see: postroom completion --help`,
		"queue pause nope": `<queue> must be one of submit, bulk, notify, documents or digests, not "nope"; ` +
			"see: postroom queue pause --help",
		"outbx":     "there is no command postroom outbx; did you mean outbox?; see: postroom --help",
		"nonsense":  "there is no command postroom nonsense; see: postroom --help",
		"token add": "<description> is missing; see: postroom token add --help",
		"secret":    "say what to do: postroom secret rotate or signing; see: postroom secret --help",
		"gateway mend x": "there is no command postroom gateway mend; there are list, show, add, update, verify, " +
			"suppressions, webhook, domains or delete; see: postroom gateway --help",
		"outbox list --nonsense": "unknown flag --nonsense; see: postroom outbox list --help",
		"config --set colour=x": "invalid configuration: colour: is not a setting (flag); postroom config lists " +
			"all settings",
	} {
		said, code := typed(t, line)
		if said != "postroom: "+want || code != exitUsage {
			t.Errorf("%s: code %d, %q; want %q", line, code, said, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for want, got := range map[string]string{"1 message": plural(1, "message"),
		"0 messages": plural(0, "message"),
		"2 messages": plural(2, "message"), "2 replies": plural(2, "reply")} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestErrorsAdviseCommands(t *testing.T) {
	for _, tc := range []struct{ message, listing, want string }{
		{"Account record was not found for requested ID; add it with POST /v1/account", "; postroom account list shows all",
			"Account record was not found for requested ID; add it with postroom account add (404)"},
		{"There is no campaign \"x\"; GET /v1/campaigns shows all", "",
			"There is no campaign \"x\"; postroom campaign list shows all (404)"},
		{"Segment \"s\" was not counted; POST /v1/segments/s/count begins", "",
			"Segment \"s\" was not counted; postroom segment count s begins (404)"},
		{"give it others with PUT /v1/account/shop.", "", "give it others with postroom account update shop (404)"},
		{"User was not found", "; postroom person list shows all",
			"User was not found; postroom person list shows all (404)"},
		{"no command does PUT /v1/nothing/x", "", "no command does PUT /v1/nothing/x (404)"},
	} {
		f := &api.Failure{Problem: api.Problem{StatusCode: 404, Message: tc.message}}
		if got := explainFailure(f, tc.listing); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// TestAdvisedCommandsExist: an error that advises a command which is not there would be worse than a route.
func TestAdvisedCommandsExist(t *testing.T) {
	kong, err := newParser(t.Context(), &console{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range advised {
		node := kong.Model.Node
		for _, word := range strings.Fields(a.command)[1:] {
			if strings.HasPrefix(word, "{") || strings.HasPrefix(word, "-") {
				break
			}
			if node = childOf(node, word); node == nil {
				t.Fatalf("%s: there is no such command", a.command)
			}
		}
		if len(node.Children) > 0 {
			t.Errorf("%s is a group", a.command)
		}
	}
}

// TestEveryAdvisedRouteHasACommand reads the texts of all errors: users of the command line know no routes.
func TestEveryAdvisedRouteHasACommand(t *testing.T) {
	root, found := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		top, _, _ := strings.Cut(rel, string(filepath.Separator))
		switch {
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && rel != ".", d.IsDir() && (top == "cmd" ||
			top == "bench" || top == "examples" || top == "internal" || top == "ui" || top == "tools"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, text := range adviceIn(file) {
			if routeInText.MatchString(text) {
				found++
			}
			if left := routeInText.FindString(inCommands(text)); left != "" {
				t.Errorf("%s: %q advises %s, and mistake.go has no command for it", rel, text, left)
			}
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Fatalf("%v; %d texts with routes were found", err, found)
	}
}

// adviceIn returns the texts given to package fault.
func adviceIn(file *ast.File) (texts []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		of, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := of.X.(*ast.Ident); !ok || pkg.Name != "fault" {
			return true
		}
		for _, arg := range call.Args {
			ast.Inspect(arg, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					texts = append(texts, strings.Trim(l.Value, "\"`"))
				}
				return true
			})
		}
		return true
	})
	return texts
}

// TestHelpListsTheExitCodes: scripts rely on them.
func TestHelpListsTheExitCodes(t *testing.T) {
	var help bytes.Buffer
	run(t.Context(), nil, &console{out: &help})
	docs, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{exitDone, exitFailed, exitUsage, exitInterrupted} {
		if !strings.Contains(help.String(), fmt.Sprintf("\n  %d ", code)) {
			t.Errorf("the help lacks the exit code %d", code)
		}
		if !strings.Contains(string(docs), fmt.Sprintf("\n| %d | ", code)) {
			t.Errorf("docs/cli.md lacks the exit code %d", code)
		}
	}
}
