// Package postroom holds no code, only the test of how the packages below it may import each other.
package postroom

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/postroom/postroom/"

// free are the packages that stand around the floors and may use any of them.
var free = regexp.MustCompile(
	`^(internal/test[a-z]+|app/apptest|outbox/search/searchtest|bench.*|examples/.*|config/gendocs)$`)

// homes says where a third party may be imported: the package, or "redis.go" style rules are left to review.
var homes = map[string][]string{
	"github.com/hibiken/asynq":    {"internal/queue"},
	"github.com/hibiken/asynqmon": {"internal/queue"},
	"github.com/redis/go-redis/v9": {"internal/redisdb", "internal/queue", "outbox", "webhooks",
		"internal/redisdb/records", "accounts/limits", "accounts/oauth", "server/access", "server/people",
		"internal/audit",
		"server/settings", "server/alerts",
		"outbox/search", "outbox/suppression", "newsletter/audience", "newsletter/sendlog", "newsletter",
		"digest", "feedback", "server/erasure",
		"cmd/postroom/emailengine"},
	"github.com/labstack/echo/v4":                    {"server", "ui", "app"},
	"github.com/danielgtaylor/huma/v2":               {"server"},
	"github.com/go-json-experiment/json/jsontext":    {"server", "outbox/templates/render", "digest"},
	"github.com/go-json-experiment/json/v1":          {"outbox", "outbox/search/bleve"},
	"github.com/yuin/goldmark":                       {"outbox/templates/render", "ui"},
	"github.com/andybalholm/cascadia":                {"outbox/templates/inlinecss"},
	"github.com/tdewolff/parse/v2/css":               {"outbox/templates/inlinecss"},
	"github.com/blevesearch/bleve/v2/index/scorch":   {"outbox/search/bleve"},
	"github.com/opensearch-project/opensearch-go/v4": {"outbox/search/opensearch"},
	"github.com/vmihailenco/msgpack/v5":              {"cmd/postroom/emailengine"},
	"github.com/pires/go-proxyproto":                 {"server/peers"},
	"go.opentelemetry.io/otel":                       {"internal/telemetry"},
	"go.opentelemetry.io/otel/trace":                 {"internal/telemetry"},
	"go.opentelemetry.io/otel/sdk/trace":             {"internal/telemetry"},
	"code.dny.dev/ssrf":                              {"internal/dialing"},
	"github.com/miekg/dns":                           {"internal/maildns", "smtpsend/mxsend"},
	module + "config":                                {"cmd/postroom", "app/demo", "app"},
}

type pkg struct {
	ImportPath string
	Doc        string
	Imports    []string
	GoFiles    []string
}

// TestImportsPointDown reads the table of docs/architecture.md and holds the code to it.
func TestImportsPointDown(t *testing.T) {
	floors := readFloors(t)
	seen := map[string]bool{}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if free.MatchString(name) || len(p.GoFiles) == 0 {
			continue
		}
		floor, ok := floors[name]
		if !ok {
			t.Errorf("package %s is not in the table of docs/architecture.md", name)
			continue
		}
		seen[name] = true
		for _, imported := range p.Imports {
			below, ours := strings.CutPrefix(imported, module)
			if ours && folder(below) != folder(name) && !(floors[below] < floor) {
				t.Errorf("%s (floor %d) imports %s (floor %d): imports point down only", name, floor, below,
					floors[below])
			}
			if ours && free.MatchString(below) {
				t.Errorf("%s imports %s, which is for tests and measurements", name, below)
			}
		}
	}
	for name := range floors {
		if !seen[name] {
			t.Errorf("docs/architecture.md lists %s, which does not exist", name)
		}
	}
}

// TestOnePackageKnowsTheClient: every other one asks server/peers. Else a proxy would be taken for the
// client.
func TestOnePackageKnowsTheClient(t *testing.T) {
	peer := regexp.MustCompile(`\.RemoteAddr\b|"X-Forwarded-|"X-Real-|\.Scheme\(\)|ExtractIP`)
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name != "ui" && name != "server" && !strings.HasPrefix(name, "server/") || name == "server/peers" {
			continue
		}
		for _, file := range p.GoFiles {
			text, err := os.ReadFile(name + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			if found := peer.Find(text); found != nil {
				t.Errorf("%s/%s reads %s: ask package server/peers for the client", name, file, found)
			}
		}
	}
}

// undialed are the packages besides dialing that may connect to something, and why.
var undialed = map[string]string{
	"internal/redisdb":         "the socket of the embedded Redis",
	"internal/maildns":         "asks the name servers of this machine, which are usually private",
	"server/smtpd":             "asks whether another process listens on its own socket",
	"api":                      "the client of Postroom, for other programs",
	"cmd/postroom":             "connects to the Postroom and the DNS of whoever runs it",
	"cmd/postroom/emailengine": "connects to the EmailEngine that is migrated from",
}

// dials are the names in other packages that connect without a check of the address.
var dials = map[string]*regexp.Regexp{
	"net":        regexp.MustCompile(`^Dial`),
	"crypto/tls": regexp.MustCompile(`^Dial`),
	"net/http":   regexp.MustCompile(`^(Default(Client|Transport)|Client|Transport|Get|Head|Post|PostForm)$`),
	"net/smtp":   regexp.MustCompile(`^(Dial|SendMail)`),

	"github.com/miekg/dns": regexp.MustCompile(`^(Client$|Dial|Exchange)`),
}

// TestOnePackageDials: a client made elsewhere would reach the operator's network and the metadata of clouds.
func TestOnePackageDials(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if free.MatchString(name) || name == "internal/dialing" || undialed[name] != "" {
			continue
		}
		for _, file := range p.GoFiles {
			for _, found := range dialsIn(t, name+"/"+file) {
				t.Errorf("%s/%s has %s: let package dialing make it", name, file, found)
			}
		}
	}
}

// dialsIn returns what a file uses of dials, except pointers to clients, which somebody else made.
func dialsIn(t *testing.T, path string) (found []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]*regexp.Regexp{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if dials[imported] == nil {
			continue
		}
		local := imported[strings.LastIndexByte(imported, '/')+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = dials[imported]
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if star, ok := n.(*ast.StarExpr); ok {
			s, ok := star.X.(*ast.SelectorExpr)
			return !ok || s.Sel.Name != "Client" && s.Sel.Name != "Transport" && s.Sel.Name != "Dialer"
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && names[x.Name] != nil && names[x.Name].MatchString(s.Sel.Name) {
				found = append(found, x.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return found
}

// TestThirdPartiesHaveOneHome keeps a dependency that may have to be replaced one day in the package made for
// it.
func TestThirdPartiesHaveOneHome(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if free.MatchString(name) {
			continue
		}
		for _, imported := range p.Imports {
			if allowed, ok := homes[imported]; ok && !slices.Contains(allowed, name) {
				t.Errorf("%s imports %s, which belongs into %s", name, imported, strings.Join(allowed, ", "))
			}
		}
	}
}

// TestEveryPackageSaysWhatItIsFor wants a package comment of more than a line.
func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range list(t) {
		if len(p.GoFiles) > 0 && len(p.Doc) < 40 {
			t.Errorf("package %s has no package comment", p.ImportPath)
		}
	}
}

// folder is the folder at the top in which a package lives: all that it holds have one floor.
func folder(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

func readFloors(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	floors := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| ([0-9]+) \\| `([^`]+)` \\|").FindAllSubmatch(page, -1) {
		floor, err := strconv.Atoi(string(row[1]))
		if err != nil {
			t.Fatal(err)
		}
		floors[string(row[2])] = floor
	}
	if len(floors) == 0 {
		t.Fatal("docs/architecture.md has no table of floors")
	}
	return floors
}

func list(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Doc,Imports,GoFiles",
		"./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var p pkg
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}
