package inlinecss

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// ErrLimit is wrapped by every error that reports too much html or CSS.
var ErrLimit = errors.New("limit of CSS inlining")

// Options bound the work. A field that is zero takes its default.
type Options struct {
	HTML    int // bytes of html; 4 MB
	CSS     int // bytes of all style elements; 256 KB
	Matches int // comparisons of a selector with an element; 4,000,000
	Output  int // bytes of declarations written into elements; 4 MB
}

func (o Options) withDefaults() Options {
	o.HTML = cmp.Or(max(o.HTML, 0), 4<<20)
	o.CSS = cmp.Or(max(o.CSS, 0), 256<<10)
	o.Matches = cmp.Or(max(o.Matches, 0), 4_000_000)
	o.Output = cmp.Or(max(o.Output, 0), 4<<20)
	return o
}

// Inline returns the html with the rules of its style elements in style attributes. Html without such rules
// is returned unchanged. It returns only ErrLimit and the context's error.
func Inline(ctx context.Context, source string, o Options) (string, error) {
	o = o.withDefaults()
	if len(source) > o.HTML {
		return source, fmt.Errorf("inline CSS: html of %d bytes: %w", len(source), ErrLimit)
	}
	p := scan(source)
	if len(p.sheets) == 0 {
		return source, nil
	}
	size := 0
	read := parser{room: o.Output}
	var err error
	for i := range p.sheets {
		s := &p.sheets[i]
		if size += s.end - s.start; size > o.CSS {
			return source, fmt.Errorf("inline CSS: more than %d bytes of CSS: %w", o.CSS, ErrLimit)
		}
		read.embeds = s.embeds
		if s.blocks, err = read.parse(source[s.start:s.end]); err != nil {
			return source, fmt.Errorf("inline CSS: %w", err)
		}
	}
	keepImportant(read.rules)
	root, err := html.Parse(strings.NewReader(p.marked))
	if err != nil { // the parser's only error: elements are nested too deep
		return source, fmt.Errorf("inline CSS: %w: %w", err, ErrLimit)
	}
	m := matcher{ctx: ctx, steps: o.Matches, space: o.Output}
	m.collect(root, len(p.tags))
	for _, r := range read.rules {
		if err := m.apply(r); err != nil {
			return source, fmt.Errorf("inline CSS: %w", err)
		}
	}
	p.sheets = slices.DeleteFunc(p.sheets, func(s sheet) bool { return s.embeds })
	for i := range p.sheets {
		p.sheets[i].kept = kept(p.sheets[i].blocks)
	}
	return p.write(source, m.found), nil
}
