package postroom

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocCommentsNameWhatIsBelow finds comments that begin with the name of another declaration of the
// package: they were left behind when code was moved or renamed.
func TestDocCommentsNameWhatIsBelow(t *testing.T) {
	packages := map[string][]*ast.File{}
	set := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".git") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		packages[filepath.Dir(path)] = append(packages[filepath.Dir(path)], file)
		return err
	})
	if err != nil || len(packages) < 50 {
		t.Fatalf("%d packages, %v", len(packages), err)
	}
	for _, files := range packages {
		declared := map[string]bool{}
		for _, file := range files {
			eachDocumented(file, func(name string, _ *ast.CommentGroup) { declared[name] = true })
		}
		for _, file := range files {
			eachDocumented(file, func(name string, doc *ast.CommentGroup) {
				words := strings.Fields(doc.Text())
				if len(words) > 0 && words[0] != name && declared[words[0]] {
					t.Errorf("%s: the comment on %s is about %s", set.Position(doc.Pos()), name, words[0])
				}
			})
		}
	}
}

// eachDocumented calls fn with each function, and each type that is declared alone.
func eachDocumented(file *ast.File, fn func(name string, doc *ast.CommentGroup)) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			fn(d.Name.Name, d.Doc)
		case *ast.GenDecl:
			if s, ok := d.Specs[0].(*ast.TypeSpec); len(d.Specs) == 1 && ok {
				fn(s.Name.Name, d.Doc)
			}
		}
	}
}
