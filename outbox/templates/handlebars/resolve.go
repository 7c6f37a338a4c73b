package handlebars

import (
	"slices"
	"strings"
)

// resolver decides whether a parsed name is a helper or a variable.
type resolver struct{ *parser }

// resolve decides between helper and variable. A name with arguments is a helper. A name without is a
// variable, even if a helper has the same name: {{url}} and {{date}} usually mean the data's.
func (p resolver) resolve(v invocation) expression {
	h := p.helperOf(v)
	if h == nil {
		return v.variable()
	}
	if h.kind != printing && (h.kind != condition || h.reserved) {
		panic(p.fault(v.offset, "%q is a block: {{#%s …}}…{{/%s}}", h.name, h.name, h.name))
	}
	p.checkArguments(h, v)
	return &call{helper: h, args: v.args, hash: v.hash, offset: v.offset}
}

// resolveBlock sets the effect of a block.
func (p resolver) resolveBlock(b *block, v invocation) {
	h := p.helperOf(v)
	if h == nil {
		b.kind, b.value = section, v.variable()
		return
	}
	if h.kind == printing {
		panic(p.fault(v.offset, "%q prints a value, it has no block", h.name))
	}
	p.checkArguments(h, v)
	b.kind, b.negated = h.kind, h.negated
	switch {
	case h.kind == verbatim:
	case h.reserved && len(v.hash) == 0:
		b.value = v.args[0]
	default:
		b.value = &call{helper: h, args: v.args, hash: v.hash, offset: v.offset}
	}
}

// helperOf returns the helper that an invocation names, or nil for a variable. Only a helper has arguments.
func (p resolver) helperOf(v invocation) *helper {
	name, given := v.name(), len(v.args)+len(v.hash)
	t, isPath := v.target.(*path)
	if !isPath || !t.data && !t.scoped && !t.param && len(t.parts) == 1 {
		if h := helpers[name]; h != nil && (h.reserved || given > 0) {
			return h
		}
	}
	if given > 0 {
		panic(p.fault(v.offset, "there is no helper %q", name))
	}
	return nil
}

// checkArguments checks the arguments of a helper.
func (p resolver) checkArguments(h *helper, v invocation) {
	if n := len(v.args); n < h.least || h.most >= 0 && n > h.most {
		panic(p.fault(v.offset, "%s takes %s, not %d", h.name, argumentCount(h.least, h.most), n))
	}
	for _, given := range v.hash {
		if !h.anyHash && !slices.Contains(h.hash, given.name) {
			if len(h.hash) == 0 {
				panic(p.fault(v.offset, "%s has no argument %s=", h.name, given.name))
			}
			panic(p.fault(v.offset, "%s has no argument %s=, but %s=", h.name, given.name,
				strings.Join(h.hash, "=, ")))
		}
	}
}

// variable reads the target as a path: {{"a name"}} and {{12}} are variables of these names.
func (v *invocation) variable() *path {
	if t, ok := v.target.(*path); ok {
		return t
	}
	name := v.name()
	return &path{original: name, parts: []string{name}, offset: v.offset}
}
