// Command size prints the figures that say how large and how tangled the code is, and fails where one is
// beyond its bound in bounds.txt.
//
// It is run from the top of the repository: go run -C tools ./size. Bounds are lowered by hand. It also fails
// if a commit raised one without a line "Raises: <name of the figure>" in its message.
//
// What is counted:
//   - code lines: lines of Go that are neither blank nor comment, without tests;
//   - columns: characters of a line, a tab being one. Lines of data (string literals, preformatted comments,
//     tables of tests and of Markdown, links, fenced code) may be longer;
//   - folders at the top: all but hidden ones, and bin and data, which make and the program write;
//   - exported names of a package: functions, types, variables, constants, and the methods of exported types,
//     including embedded types': what a reader of its callers may have to look up. Not for api, whose names
//     are the HTTP API's;
//   - places that repeat others: runs of 60 or more equal tokens that stand in the program before, without
//     tests, imports and generated files;
//   - interfaces with one implementation: named interfaces outside of tests that exactly one type of this
//     module implements, the gear of tests (internal/test*, app/apptest), bench and examples left out.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash/maphash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	columns       = 110 // the longest line
	functionLines = 60  // the longest function
	fileLines     = 500 // the longest file
	listed        = 12  // offenders shown of each kind
	boundsFile    = "size/bounds.txt"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run() error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	h := &census{root: root, packages: map[string]bool{}, folders: map[string]bool{},
		repeated: duplicates{seed: maphash.MakeSeed(), first: map[uint64]int{}}}
	if err := filepath.WalkDir(root, h.visit); err != nil {
		return err
	}
	program, err := load(root)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(boundsFile)
	if err != nil {
		return err
	}
	bounds, err := readBounds(text)
	if err != nil {
		return err
	}
	if err := report(h.figures(program), bounds); err != nil {
		return err
	}
	higher, err := raised(boundsFile)
	if err == nil && len(higher) > 0 {
		err = errors.New("bounds raised without a line \"Raises: <name>\" in the commit message: " +
			strings.Join(higher, ", "))
	}
	return err
}

// A figure is one count, with the places it counts where these are worth a look.
type figure struct {
	name   string
	value  int
	places []string
}

// census adds up what it finds in the files below root.
type census struct {
	root      string
	lines     int
	code      int
	packages  map[string]bool
	folders   map[string]bool // at the top
	functions []string        // over functionLines
	files     []string        // over fileLines
	long      []string        // lines over columns
	repeated  duplicates
}

func (h *census) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, _ := filepath.Rel(h.root, path)
	if d.IsDir() {
		if d.Name() == "testdata" || d.Name() == "node_modules" || len(d.Name()) > 1 && d.Name()[0] == '.' {
			return filepath.SkipDir
		}
		if filepath.Dir(name) == "." && name != "." && name != "bin" && name != "data" {
			h.folders[name] = true
		}
		return nil
	}
	switch filepath.Ext(name) {
	case ".go":
		return h.goFile(path, name)
	case ".md":
		return h.page(path, name)
	}
	return nil
}

func (h *census) goFile(path, name string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	lines := bytes.Split(bytes.TrimSuffix(src, []byte("\n")), []byte("\n"))
	data := dataLines(files, file)
	output := false // within what an example is to print
	for i, line := range lines {
		table := bytes.HasPrefix(line, []byte("//\t"))
		text := bytes.TrimSpace(line)
		output = bytes.HasPrefix(text, []byte("// Output:")) || output && bytes.HasPrefix(text, []byte("//"))
		if utf8.RuneCount(line) > columns && !data[i+1] && !table && !output {
			h.long = append(h.long, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	for _, d := range file.Decls {
		from, to := files.Position(d.Pos()), files.Position(d.End())
		if f, ok := d.(*ast.FuncDecl); ok && to.Line-from.Line >= functionLines {
			h.functions = append(h.functions, fmt.Sprintf("%s %s (%d lines)", name, f.Name.Name, to.Line-from.Line+1))
		}
	}
	h.packages[filepath.Dir(name)] = true
	h.lines += len(lines)
	h.code += codeLines(files, file, len(lines), lines)
	if len(lines) > fileLines {
		h.files = append(h.files, fmt.Sprintf("%s (%d lines)", name, len(lines)))
	}
	if end := importsEnd(file); !ast.IsGenerated(file) {
		at := files.Position(end)
		h.repeated.add(name, at.Line-1, src[at.Offset:])
	}
	return nil
}

func importsEnd(file *ast.File) token.Pos {
	end := file.Name.End()
	for _, d := range file.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			end = g.End()
		}
	}
	return end
}

// codeLines counts the lines that hold more than comments.
func codeLines(files *token.FileSet, file *ast.File, n int, lines [][]byte) int {
	comment := make([]bool, n+2)
	for _, group := range file.Comments {
		for _, c := range group.List {
			from, to := files.Position(c.Pos()), files.Position(c.End())
			for l := from.Line; l <= to.Line; l++ {
				before := ""
				if l == from.Line {
					before = string(lines[l-1][:from.Column-1])
				}
				comment[l] = strings.TrimSpace(before) == ""
			}
		}
	}
	code := 0
	for i, line := range lines {
		if len(bytes.TrimSpace(line)) > 0 && !comment[i+1] {
			code++
		}
	}
	return code
}

// dataLines are the lines that hold a string literal of 40 bytes or more: a text is not cut to fit.
func dataLines(files *token.FileSet, file *ast.File) map[int]bool {
	data := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && len(lit.Value) >= 40 {
			for l := files.Position(lit.Pos()).Line; l <= files.Position(lit.End()).Line; l++ {
				data[l] = true
			}
		}
		return true
	})
	return data
}

// page counts the long lines of a page of Markdown, but for tables, fenced code and lines that a link makes
// long.
func (h *census) page(path, name string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	fenced := false
	for i, line := range strings.Split(string(src), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(strings.TrimSpace(line), "|") || strings.HasPrefix(line, "    ") {
			continue
		}
		if utf8.RuneCountInString(line) > columns && strings.Contains(strings.TrimSpace(line), " ") &&
			!linkMakesLong(line) {
			h.long = append(h.long, fmt.Sprintf("%s:%d", name, i+1))
		}
	}
	return nil
}

// linkMakesLong reports whether a line has no space after which it could have been broken in time.
func linkMakesLong(line string) bool {
	at := strings.LastIndexByte(strings.TrimRight(line, " "), ' ')
	return at < len(line)-len(strings.TrimLeft(line, " >-*"))
}

func (h *census) figures(p typed) []figure {
	most, where := 0, []string{}
	for name, n := range p.exported {
		most = max(most, n)
		if n > 60 {
			where = append(where, fmt.Sprintf("%s (%d)", name, n))
		}
	}
	return []figure{
		{"lines of Go", h.lines, nil},
		{"lines of code", h.code, nil},
		{"packages", len(h.packages), nil},
		{"folders at the top", len(h.folders), slices.Sorted(maps.Keys(h.folders))},
		{"most exported names of a package", most, where},
		{"places that repeat others", len(h.repeated.places), h.repeated.places},
		{"interfaces with one implementation", len(p.single), p.single},
		{"functions over 60 lines", len(h.functions), h.functions},
		{"files over 500 lines", len(h.files), h.files},
		{"lines over 110 columns", len(h.long), h.long},
	}
}

func report(figures []figure, bounds map[string]int) error {
	var wrong []string
	for _, f := range figures {
		bound, ok := bounds[f.name]
		if !ok {
			return fmt.Errorf("bounds.txt has no line for %q", f.name)
		}
		fmt.Printf("%-36s %7d  at most %d\n", f.name, f.value, bound)
		if f.value <= bound {
			continue
		}
		wrong = append(wrong, f.name)
		slices.Sort(f.places)
		for _, p := range f.places[:min(len(f.places), listed)] {
			fmt.Println("    " + p)
		}
	}
	if len(wrong) > 0 {
		return errors.New("beyond the bound: " + strings.Join(wrong, ", "))
	}
	return nil
}

// readBounds reads lines of a number and the name of a figure.
func readBounds(text []byte) (map[string]int, error) {
	bounds := map[string]int{}
	for line := range strings.Lines(string(text)) {
		number, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("bounds: %q does not begin with a number: %w", line, err)
		}
		bounds[name] = n
	}
	return bounds, nil
}
