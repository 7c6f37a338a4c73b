package main

import (
	"fmt"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/postroom/postroom/"

// gear are the packages whose types don't count as implementations: they serve tests and measurements.
var gear = regexp.MustCompile(
	`^(internal/test[a-z]+|app/apptest|outbox/search/searchtest|bench|examples)(/|$)`)

// typed is what only a loaded program shows.
type typed struct {
	single   []string       // interfaces that one type of this module implements
	exported map[string]int // names by package
}

func load(root string) (typed, error) {
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports,
		Dir:  root,
	}, "./...")
	t := typed{exported: map[string]int{}}
	if err != nil {
		return t, err
	}
	var interfaces, concrete []*types.TypeName
	for _, p := range all {
		if len(p.Errors) > 0 {
			return t, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		path := strings.TrimPrefix(p.PkgPath, module)
		if gear.MatchString(path) {
			continue
		}
		if path != "api" {
			t.exported[path] = exported(p.Types.Scope())
		}
		for _, name := range p.Types.Scope().Names() {
			named, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || named.IsAlias() || generic(named) {
				continue
			}
			if i, ok := named.Type().Underlying().(*types.Interface); !ok {
				concrete = append(concrete, named)
			} else if i.IsMethodSet() && i.NumMethods() > 0 {
				interfaces = append(interfaces, named)
			}
		}
	}
	for _, i := range interfaces {
		var by []string
		for _, c := range concrete {
			if types.Implements(types.NewPointer(c.Type()), i.Type().Underlying().(*types.Interface)) {
				by = append(by, short(c))
			}
		}
		if len(by) == 1 {
			t.single = append(t.single, short(i)+", which is "+by[0])
		}
	}
	slices.Sort(t.single)
	return t, nil
}

// exported counts the exported names of a package: functions, types, variables, constants, and the methods
// that a caller finds on its types, including embedded ones'.
func exported(scope *types.Scope) int {
	n := 0
	for _, name := range scope.Names() {
		object := scope.Lookup(name)
		if !object.Exported() {
			continue
		}
		n++
		t, ok := object.(*types.TypeName)
		if !ok || t.IsAlias() {
			continue
		}
		of := t.Type()
		if !types.IsInterface(of) {
			of = types.NewPointer(of)
		}
		for method := range types.NewMethodSet(of).Methods() {
			if o := method.Obj(); o.Exported() && o.Pkg() == t.Pkg() {
				n++
			}
		}
	}
	return n
}

func generic(t *types.TypeName) bool {
	named, ok := t.Type().(*types.Named)
	return ok && named.TypeParams().Len() > 0
}

func short(t *types.TypeName) string {
	return strings.TrimPrefix(t.Pkg().Path(), module) + "." + t.Name()
}
