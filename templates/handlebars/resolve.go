package handlebars

import (
	"slices"
	"strings"
)

// resolver finds out what the parsed names stand for: helpers or variables.
type resolver struct{ *parser }

// resolve decides between helper and variable. A name with arguments is a helper. A name without is a
// variable, even if a helper has the same name: {{url}} and {{date}} usually mean the data's.
func (p resolver) resolve(v invocation) (expression, error) {
	h := p.helperOf(v)
	if h == nil {
		return v.variable(), p.unknownHelper(v)
	}
	if h.kind != printing && (h.kind != condition || h.reserved) {
		return nil, p.fault(v.offset, "%q is a block: {{#%s …}}…{{/%s}}", h.name, h.name, h.name)
	}
	return p.call(h, v)
}

// resolveBlock sets the effect of a block.
func (p resolver) resolveBlock(b *block, v invocation) error {
	h := p.helperOf(v)
	if h == nil {
		b.kind, b.value = section, v.variable()
		return p.unknownHelper(v)
	}
	if h.kind == printing {
		return p.fault(v.offset, "%q prints a value, it has no block", h.name)
	}
	if err := p.checkArguments(h, v); err != nil {
		return err
	}
	b.kind, b.negated = h.kind, h.negated
	switch {
	case h.kind == verbatim:
	case h.reserved && len(v.hash) == 0:
		b.value = v.args[0]
	default:
		c, err := p.call(h, v)
		b.value = c
		return err
	}
	return nil
}

// call makes the call of a helper, whose arguments must be in order.
func (p resolver) call(h *helper, v invocation) (expression, error) {
	if err := p.checkArguments(h, v); err != nil {
		return nil, err
	}
	return &call{helper: h, args: v.args, hash: v.hash, offset: v.offset}, nil
}

// helperOf returns the helper that an invocation names.
func (p resolver) helperOf(v invocation) *helper {
	name := v.name()
	if t, ok := v.target.(*path); ok && (t.data || t.scoped || t.param || len(t.parts) != 1) {
		return nil
	}
	h := helpers[name]
	if h == nil || !h.reserved && len(v.args)+len(v.hash) == 0 {
		return nil
	}
	return h
}

func (p resolver) unknownHelper(v invocation) error {
	if len(v.args)+len(v.hash) == 0 {
		return nil
	}
	return p.fault(v.offset, "there is no helper %q", v.name())
}

// checkArguments checks the arguments of a helper.
func (p resolver) checkArguments(h *helper, v invocation) error {
	if n := len(v.args); n < h.least || h.most >= 0 && n > h.most {
		return p.fault(v.offset, "%s takes %s, not %d", h.name, argumentCount(h.least, h.most), n)
	}
	for _, given := range v.hash {
		if !h.anyHash && !slices.Contains(h.hash, given.name) {
			if len(h.hash) == 0 {
				return p.fault(v.offset, "%s has no argument %s=", h.name, given.name)
			}
			return p.fault(v.offset, "%s has no argument %s=, but %s=", h.name, given.name,
				strings.Join(h.hash, "=, "))
		}
	}
	return nil
}

// variable reads the target as a path: {{"a name"}} and {{12}} are variables of these names.
func (v *invocation) variable() *path {
	if t, ok := v.target.(*path); ok {
		return t
	}
	name := v.name()
	return &path{original: name, parts: []string{name}, offset: v.offset}
}
