package outbox

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// below lists the groups that each group of files may use. The group of a file is the first word of its name.
var below = map[string][]string{
	"record":     nil,
	"intake":     {"record"},
	"delivery":   {"record"},
	"queues":     {"record", "rates"},
	"facts":      {"record"},
	"rates":      {"record"},
	"read":       {"record"},
	"operations": {"record", "read"},
	"mailing":    {"record", "intake", "delivery"},
	"outbox":     {"record", "intake", "delivery", "queues", "facts", "rates", "read", "operations", "mailing"},
}

func groupOf(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".go"), "_")
	return name
}

// TestGroupsPointDown: references between the groups run one way, and no type has more than 40 methods.
func TestGroupsPointDown(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set, files := token.NewFileSet(), map[string]*ast.File{}
	groups, methods := map[string]string{}, map[string]int{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || name == "doc.go" {
			continue
		}
		if _, ok := below[groupOf(name)]; !ok {
			t.Errorf("%s belongs to no group", name)
		}
		file, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
		for object := range file.Scope.Objects {
			groups[object] = groupOf(name)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
				of := f.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				methods[of.(*ast.Ident).Name]++
			}
		}
	}
	for name, n := range methods {
		if n > 40 {
			t.Errorf("%s has %d methods", name, n)
		}
	}
	for name, file := range files {
		mine := groupOf(name)
		for _, used := range file.Unresolved { // of this package, of another one, or built in
			if group := groups[used.Name]; group != "" && group != mine && !slices.Contains(below[mine], group) {
				t.Errorf("%s uses %s, which is in %s", set.Position(used.Pos()), used.Name, group)
			}
		}
	}
}
