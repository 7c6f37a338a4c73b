package handlebars

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/postroom/postroom/outbox/templates/locale"
)

// Input is the input of an execution besides its data.
type Input struct {
	// Strict makes missing variables an error with all names; otherwise they print nothing.
	Strict bool
	// Locale is the language of numbers and dates, such as "de" or "pt-BR"; defaults to English.
	Locale string
	// Zone is the time zone of dates; defaults to UTC.
	Zone *time.Location
	// Variables are additional @variables, such as {"site": …} for {{@site}}.
	Variables map[string]any
}

// Result is the output of a template.
type Result struct {
	Text    string
	Missing []Missing // the missing variables, each once, in order of use; at most 100
	// HTML: where escaped values stand, in order. Empty values and those in indented partials are left out.
	// Markdown: the values of the marks
	Values []Value
}

// Value is an escaped value in the text of a result.
type Value struct {
	Text       string // before it was escaped
	Start, End int    // position of its escaped form (HTML) in Result.Text
}

// Missing is a variable that is printed or passed to a helper and is missing in the data.
type Missing struct {
	Name         string // as the template writes it
	Template     string // the partial; empty for the template itself
	Line, Column int    // where it is first used
}

// maxMissing is the maximum number of reported missing variables.
const maxMissing = 100

// run is one execution.
type run struct {
	template *Template
	ctx      context.Context
	input    Input
	src      *source // being executed
	out      writer
	steps    int
	depth    int // nested partials
	words    locale.Locale
	missing  []Missing
}

// Execute renders the template with data: maps, slices and scalars as encoding/json decodes them into an any,
// numbers as float64, int, int64 or json.Number. It returns an *Error if a limit was exceeded, the context
// ended, a partial with a computed name does not exist, or a helper has unusable arguments. In strict mode it
// also returns one if variables are missing; then the Result is complete.
func (t *Template) Execute(ctx context.Context, data any, in Input) (Result, error) {
	r := &run{template: t, ctx: ctx, input: in, src: t.main, words: locale.Find(in.Locale)}
	r.out = writer{limit: t.limits.Output, escaping: t.options.Escaping, mustache: t.options.Mustache}
	buffer, _ := t.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new(make([]byte, 0, min(len(t.main.text)*2, t.limits.Output)))
	}
	r.out.text = (*buffer)[:0]
	defer func() { *buffer = r.out.text; t.buffers.Put(buffer) }()
	e := env{frame: &frame{value: data}, data: &variables{root: data, named: in.Variables}}
	err := catch(func() {
		r.mustRun()
		r.program(t.main.main, e, nil)
	})
	if err != nil {
		return Result{Missing: r.missing}, err
	}
	result := Result{Text: string(r.out.text), Missing: r.missing, Values: r.out.values}
	if t.options.Escaping == Header {
		result.Text = oneLine(result.Text)
	}
	if !in.Strict || len(r.missing) == 0 {
		return result, nil
	}
	first := r.missing[0]
	names := first.Name
	for _, m := range r.missing[1:] {
		names += ", " + m.Name
	}
	return result, &Error{Template: first.Template, Line: first.Line, Column: first.Column, Err: ErrMissing,
		Message: "missing: " + names}
}

// program executes nodes in an environment. outer is the surrounding context, the context of partials
// declared inside.
func (r *run) program(p *program, e env, outer *frame) {
	if p == nil {
		return
	}
	if len(p.inlines) > 0 {
		e.partials = &scope{declared: p.inlines, src: r.src, frame: outer, params: e.params, next: e.partials}
	}
	for _, n := range p.body {
		switch n := n.(type) {
		case *content:
			r.spend(1, 0)
			r.mustFit(r.out.content(n.value))
		case *output:
			r.print(n, &e)
		case *block:
			r.block(n, &e)
		case *partial:
			r.partial(n, &e)
		}
	}
}

// print writes a value.
func (r *run) print(o *output, e *env) {
	v := r.value(o.value, e)
	if _, gone := v.(undefined); gone {
		r.miss(o.value)
	}
	_, isMarkup := v.(markup)
	r.mustFit(r.out.value(r.textOf(v, o.offset), o.raw || isMarkup))
}

// miss records a missing variable.
func (r *run) miss(value expression) {
	p, ok := value.(*path)
	if !ok || len(r.missing) == maxMissing {
		return
	}
	if !slices.ContainsFunc(r.missing, func(m Missing) bool { return m.Name == p.original }) {
		line, column := r.src.place(p.offset)
		r.missing = append(r.missing, Missing{Name: p.original, Template: r.src.name, Line: line, Column: column})
	}
}

// spend counts n steps. It regularly checks the deadline.
func (r *run) spend(n, offset int) {
	const interval = 1 << 10
	before := r.steps
	r.steps += n
	if most := r.template.limits.Steps; r.steps > most {
		panic(r.src.errorAt(offset, ErrLimit, "more than %d steps", most))
	}
	if before/interval != r.steps/interval {
		r.mustRun()
	}
}

// mustRun ends the execution if the context has ended.
func (r *run) mustRun() {
	switch err := r.ctx.Err(); {
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded):
		panic(&Error{Message: "the template takes too long", Err: err})
	default:
		panic(&Error{Message: "the execution was stopped", Err: err})
	}
}

// mustFit ends the execution if the output did not fit.
func (r *run) mustFit(fitted bool) {
	if !fitted {
		panic(tooLong(r.src.name, "the result", r.template.limits.Output))
	}
}

func tooLong(template, what string, limit int) *Error {
	return &Error{Template: template, Err: ErrLimit, Message: fmt.Sprintf("%s is longer than %d bytes", what,
		limit)}
}
