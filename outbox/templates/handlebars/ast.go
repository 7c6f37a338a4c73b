package handlebars

// source is one parsed text: the template or a partial.
type source struct {
	name string // the partial; empty for the template itself
	text string
	main *program
}

// program is a sequence of nodes: a whole source, or the inside of a block.
type program struct {
	body    []node
	inlines []*inline // partials declared in it; defined before its first node runs
	chained bool      // it is only the block of an {{else if}}
}

// A node is one of content, comment, output, block, partial, inline.
type node any

// content is literal text.
type content struct {
	value                       string // the text after white space control
	original                    string // as written in the source
	leftStripped, rightStripped bool
}

// strip is the sides of a tag with a tilde, where white space is removed.
type strip struct{ open, close bool }

// comment is a tag that prints nothing: a comment, or a change of delimiters.
type comment struct{ strip strip }

// output is a tag that prints a value.
type output struct {
	value  expression
	raw    bool // {{{ }}} or {{& }}: not escaped
	strip  strip
	offset int
}

// blockKind is the effect of a block.
type blockKind int

const (
	printing  blockKind = iota // for helpers that print a value: not a block
	section                    // a name: repeats a list, enters an object, tests a boolean
	condition                  // if, and helpers that return a boolean
	each
	with
	verbatim // {{{{raw}}}}
)

// block is a tag with an inside, and perhaps an {{else}} branch.
type block struct {
	kind                                blockKind
	negated                             bool // unless: program and inverse are swapped
	value                               expression
	program, inverse                    *program // at most one is nil
	blockParams                         int      // names declared with as |x y|
	name                                string   // as it was opened, for the tag that closes it
	openStrip, inverseStrip, closeStrip strip
	offset                              int
}

// partial is a call of a partial.
type partial struct {
	name       string     // empty if dynamic
	dynamic    expression // gives the name
	context    expression // nil for the current one
	hash       []pair
	block      *program // of {{#> name}}; nil for a plain call
	indent     string   // white space before a call that is alone on its line
	strip      strip
	closeStrip strip
	offset     int
}

// inline is a declaration of a partial within a template.
type inline struct {
	name                  string
	program               *program
	openStrip, closeStrip strip
}

// An expression is a literal, *path or *call.
type expression any

// literal is a value written into the template.
type literal struct{ value any }

// path leads to a value: from the current context, an outer one, a block parameter or a @variable.
type path struct {
	original string // as written, without brackets
	parts    []string
	depth    int  // number of ../
	data     bool // begins with @
	scoped   bool // begins with this, . or ..
	param    bool // begins with a block parameter:
	level    int  // that block's level, counted outwards,
	index    int  // and its number there
	offset   int
}

// call is a call of a helper.
type call struct {
	helper *helper
	args   []expression
	hash   []pair
	offset int
}

// pair is a named argument.
type pair struct {
	name  string
	value expression
}
