package handlebars

// env is the meaning of names at a place of an executed template.
type env struct {
	frame    *frame     // the current context and its outer ones
	data     *variables // what begins with @
	params   *params    // block parameters
	partials *scope     // partials declared in the template
	block    *passed    // printed by {{> @partial-block}}
}

// frame is a context. ../ refers to the next outer one.
type frame struct {
	value any
	outer *frame
}

// enter makes a context the current one. If it is already current, the depth stays.
func (f *frame) enter(value any) *frame {
	if f != nil && same(value, f.value) {
		return &frame{value: value, outer: f.outer}
	}
	return &frame{value: value, outer: f}
}

// variables are the @variables. Each repetition adds its own.
type variables struct {
	root        any            // @root
	named       map[string]any // given from outside
	outer       *variables     // @../
	repeats     bool           // the following are set:
	key         any            // @key
	index       int            // @index
	first, last bool           // @first, @last
}

// find returns the value of a variable.
func (v *variables) find(name string) any {
	for ; v != nil; v = v.outer {
		if v.repeats {
			switch name {
			case "index":
				return v.index
			case "key":
				return v.key
			case "first":
				return v.first
			case "last":
				return v.last
			}
		}
		if v.outer == nil {
			if name == "root" {
				return v.root
			}
			if value, ok := v.named[name]; ok {
				return value
			}
		}
	}
	return undefined{}
}

// params are the values of one block's parameters.
type params struct {
	values [2]any
	count  int
	outer  *params
}

// scope holds the partials declared in one program.
type scope struct {
	declared []*inline
	src      *source // where they were declared,
	frame    *frame  // around which context,
	params   *params // and with which block parameters
	next     *scope
}

// find returns the innermost partial of a name; the last of a program counts.
func (s *scope) find(name string) (*scope, *program) {
	for ; s != nil; s = s.next {
		for i := len(s.declared) - 1; i >= 0; i-- {
			if s.declared[i].name == name {
				return s, s.declared[i].program
			}
		}
	}
	return nil, nil
}

// passed is a block passed to a partial, with its environment.
type passed struct {
	program *program
	src     *source
	env     env
}
