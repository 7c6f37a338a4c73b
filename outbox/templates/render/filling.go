package render

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// filling is a text with holes that values fill.
type filling struct {
	around []string // one more than holes
	holes  []int    // which value goes between each two
}

// plain is a text that has each value once, in order.
func plain(around []string) filling {
	f := filling{around: around, holes: make([]int, len(around)-1)}
	for i := range f.holes {
		f.holes[i] = i
	}
	return f
}

// split finds the stand-ins of values in a text.
func split(text string, names []string) filling {
	f := filling{}
	at := 0
	for {
		next, which := len(text), -1
		for i, name := range names {
			if n := strings.Index(text[at:], name); n >= 0 && at+n < next {
				next, which = at+n, i
			}
		}
		f.around = append(f.around, strings.Clone(text[at:next]))
		if which < 0 {
			return f
		}
		f.holes = append(f.holes, which)
		at = next + len(names[which])
	}
}

// once reports whether no value is in the text twice.
func (f filling) once() bool {
	sorted := slices.Sorted(slices.Values(f.holes))
	return len(slices.Compact(sorted)) == len(f.holes)
}

func (f filling) equal(other filling) bool {
	return slices.Equal(f.around, other.around) && slices.Equal(f.holes, other.holes)
}

// with returns the text with the values of a page, escaped or not.
func (f filling) with(page handlebars.Result, escaped bool) string {
	if escaped {
		return f.filled(func(i int) string { return page.Text[page.Values[i].Start:page.Values[i].End] })
	}
	return f.of(page.Values)
}

// of returns the text with unescaped values.
func (f filling) of(values []handlebars.Value) string {
	if len(f.holes) == 0 {
		return f.around[0]
	}
	return f.filled(func(i int) string { return values[i].Text })
}

func (f filling) filled(value func(int) string) string {
	size := 0
	for _, part := range f.around {
		size += len(part)
	}
	for _, hole := range f.holes {
		size += len(value(hole))
	}
	var b strings.Builder
	b.Grow(size)
	for i, hole := range f.holes {
		b.WriteString(f.around[i])
		b.WriteString(value(hole))
	}
	b.WriteString(f.around[len(f.holes)])
	return b.String()
}
