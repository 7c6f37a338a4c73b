package handlebars

// source is one text that was parsed: the template itself, or a partial.
type source struct {
	name string // of the partial; empty: the template itself
	text string
	main *program
}

// program is a sequence of nodes that is executed together: a whole source, or the inside of a block.
type program struct {
	body    []node
	inlines []*inline // partials declared in it; they are there before the first node is executed
	chained bool      // it consists of one block alone, that of an {{else if}}
}

// A node is one of content, comment, output, block, partial, inline.
type node any

// content is text to be copied.
type content struct {
	value                       string // what is left to copy after white space control
	original                    string // as it stands in the source
	leftStripped, rightStripped bool
}

// strip says on which sides a tag asked for white space to be taken away, with a tilde.
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

// blockKind says what a block does with its value.
type blockKind int

const (
	printing  blockKind = iota // of helpers that print a value: no block at all
	section                    // a name alone: a list is repeated, an object entered, true and false choose
	condition                  // if, and helpers that answer true or false
	each
	with
	verbatim // {{{{raw}}}}
)

// block is a tag with an inside, and perhaps with another one after {{else}}.
type block struct {
	kind                                blockKind
	negated                             bool // unless: program and inverse change places
	value                               expression
	program, inverse                    *program // either may be nil, not both
	blockParams                         int      // names declared with as |x y|
	name                                string   // as it was opened, for the tag that closes it
	openStrip, inverseStrip, closeStrip strip
	offset                              int
}

// partial is a call of a partial.
type partial struct {
	name       string     // empty: dynamic
	dynamic    expression // gives the name
	context    expression // nil: the current one
	hash       []pair
	block      *program // of {{#> name}}; nil for a plain call
	indent     string   // white space before a call that stands alone on its line
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

// An expression is one of literal, *path, *call.
type expression any

// literal is a value written into the template.
type literal struct{ value any }

// path leads to a value: from the current context, an outer one, a block parameter or a @variable.
type path struct {
	original string // as written, but for brackets
	parts    []string
	depth    int  // number of ../
	data     bool // begins with @
	scoped   bool // begins with this, . or ..
	param    bool // begins with a block parameter:
	level    int  // of that block, counted outwards,
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
