package e2e_test

import (
	"io/fs"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"

	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/docs"
	"github.com/postroom/postroom/internal/testredis"
)

// refusedCommands are parts of commands that docs/ shows for their refusal.
var refusedCommands = []string{`"subjet"`}

// TestCommandsOfTheGuide: each curl of docs/ to the API is one request when pasted into a shell, with the
// token as docs/quickstart.md says, to an operation of the OpenAPI document, with the queries and the body
// that this takes.
func TestCommandsOfTheGuide(t *testing.T) {
	t.Parallel()
	_, router := describedBy(t, apptest.Run(t, map[string]string{"redis.url": testredis.URL(t)}).URL())
	seen := 0
	err := fs.WalkDir(docs.Pages, ".", func(page string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(page, ".md") {
			return err
		}
		text, err := fs.ReadFile(docs.Pages, page)
		if err != nil {
			return err
		}
		for _, command := range curls(t, string(text)) {
			req := requestOf(t, command)
			if req == nil {
				continue
			}
			seen++
			if req.Header.Get("Authorization") != "Bearer token" {
				t.Errorf("%s: has not -H \"$AUTH\": %s", page, command)
			}
			route, params, err := router.FindRoute(req)
			if err != nil {
				t.Errorf("%s: %v: %s", page, err, command)
				continue
			}
			err = openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{Request: req,
				PathParams: params, Route: route, Options: &openapi3filter.Options{
					AuthenticationFunc: openapi3filter.NoopAuthenticationFunc}})
			refused := slices.ContainsFunc(refusedCommands, func(part string) bool {
				return strings.Contains(command, part)
			})
			if (err != nil) != refused {
				t.Errorf("%s: %v: %s", page, err, command)
			}
		}
		return nil
	})
	if err != nil || seen < 50 {
		t.Errorf("%d commands were seen; %v", seen, err)
	}
}

// curls returns the commands of a page that begin with curl, each whole.
func curls(t *testing.T, page string) (commands []string) {
	t.Helper()
	lines := strings.Split(page, "\n")
	for n := 0; n < len(lines); n++ {
		first := strings.TrimPrefix(strings.TrimSpace(lines[n]), "$ ")
		if !strings.HasPrefix(first, "curl ") {
			continue
		}
		command := first
		for strings.HasSuffix(command, `\`) ||
			exec.CommandContext(t.Context(), "bash", "-nc", command).Run() != nil {
			if n++; n == len(lines) {
				t.Fatalf("this command has no end: %s", first)
			}
			command += "\n" + lines[n]
		}
		commands = append(commands, command)
	}
	return commands
}

// pasteShell is what commands find in the shell: curl tells its arguments, and what guides have of other
// programs is there.
const pasteShell = `curl() { printf '%s\0' "$@"; }
jq() { echo '{"domain":"example.com","selector":"s1","privateKey":"pem"}'; }
URL=http://postroom.test AUTH="Authorization: Bearer token" ID=1
DAY=2027-07-01 mail='{"to":[{"address":"a@x.test"}],"text":"x"}'
`

// requestOf returns the request that a command makes; nil: it goes elsewhere than to the API.
func requestOf(t *testing.T, command string) *http.Request {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bash", "-c", pasteShell+command).Output()
	if err != nil {
		t.Errorf("bash: %v: %s", err, command)
		return nil
	}
	method, address, body := "", "", ""
	header := http.Header{}
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for n := 0; n < len(words); n++ {
		value := ""
		if n+1 < len(words) {
			value = words[n+1]
		}
		switch word := words[n]; word {
		case "-X":
			method = value
		case "-H":
			name, content, _ := strings.Cut(value, ": ")
			header.Set(name, content)
		case "--json":
			header.Set("Content-Type", "application/json")
			body = value
		case "-d", "--data-binary", "-T", "-o":
			body = value
		default:
			if strings.HasPrefix(word, "http") {
				address = word
			}
			continue
		}
		n++
	}
	if !strings.HasPrefix(address, "http://postroom.test/v1/") || strings.HasPrefix(body, "@") {
		return nil
	}
	if method == "" {
		method = http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
	}
	path := strings.TrimPrefix(address, "http://postroom.test")
	req, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Errorf("%v: %s", err, command)
		return nil
	}
	req.Header = header
	return req
}
