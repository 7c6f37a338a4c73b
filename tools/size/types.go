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

// gear are the packages whose types are no implementations: they serve tests and measurements.
var gear = regexp.MustCompile(
	`^(internal/test[a-z]+|app/apptest|outbox/search/searchtest|bench|examples)(/|$)`)

// singleInterfaces names the interfaces of the module below root that one type of it implements.
func singleInterfaces(root string) ([]string, error) {
	all, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports,
		Dir:  root,
	}, "./...")
	if err != nil {
		return nil, err
	}
	var interfaces, concrete []*types.TypeName
	for _, p := range all {
		if len(p.Errors) > 0 {
			return nil, fmt.Errorf("load %s: %w", p.PkgPath, p.Errors[0])
		}
		if gear.MatchString(strings.TrimPrefix(p.PkgPath, module)) {
			continue
		}
		for _, name := range p.Types.Scope().Names() {
			t, ok := p.Types.Scope().Lookup(name).(*types.TypeName)
			if !ok || t.IsAlias() || generic(t) {
				continue
			}
			if i, ok := t.Type().Underlying().(*types.Interface); !ok {
				concrete = append(concrete, t)
			} else if i.IsMethodSet() && i.NumMethods() > 0 {
				interfaces = append(interfaces, t)
			}
		}
	}
	var single []string
	for _, i := range interfaces {
		var by []string
		for _, c := range concrete {
			if types.Implements(types.NewPointer(c.Type()), i.Type().Underlying().(*types.Interface)) {
				by = append(by, short(c))
			}
		}
		if len(by) == 1 {
			single = append(single, short(i)+", which is "+by[0])
		}
	}
	slices.Sort(single)
	return single, nil
}

func generic(t *types.TypeName) bool {
	named, ok := t.Type().(*types.Named)
	return ok && named.TypeParams().Len() > 0
}

func short(t *types.TypeName) string {
	return strings.TrimPrefix(t.Pkg().Path(), module) + "." + t.Name()
}
