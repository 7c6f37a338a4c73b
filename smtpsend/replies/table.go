package replies

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/api"
)

//go:embed table.txt
var tableFile string

// entry is one entry of table.txt.
type entry struct {
	api.Explanation
	words    [][]pattern // alternatives; all parts of one have to match
	class    string      // "0", "4", "5", or "" for all
	enhanced []string    // such as x.1.1
	codes    []string    // such as 550 or 5xx
	errors   []string
	webhook  bool // codes are of HTTP
}

// table reads table.txt, once. It panics if the file is faulty, which a test finds.
var table = sync.OnceValue(func() []*entry {
	all, err := parse(tableFile)
	if err != nil {
		panic(err)
	}
	return all
})

func parse(text string) ([]*entry, error) {
	var all []*entry
	lines := strings.Split(strings.ReplaceAll(text, "\n ", " "), "\n")
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			all = append(all, &entry{Explanation: api.Explanation{Reason: strings.Trim(line, "[]")}})
		case len(all) == 0:
			return nil, fmt.Errorf("table.txt: %q is before the first entry", line)
		default:
			if err := all[len(all)-1].set(name, value); err != nil {
				return nil, fmt.Errorf("table.txt: %s: %w", all[len(all)-1].Reason, err)
			}
		}
	}
	return all, nil
}

// set takes over one line of an entry.
func (e *entry) set(name, value string) error {
	switch name {
	case "words":
		var parts []pattern
		for part := range strings.SplitSeq(value, " && ") {
			p, err := newPattern(part)
			if err != nil {
				return err
			}
			parts = append(parts, p)
		}
		e.words = append(e.words, parts)
	case "class":
		e.class = value
	case "enhanced":
		e.enhanced = strings.Fields(value)
	case "code":
		e.codes = strings.Fields(value)
	case "http":
		e.codes, e.webhook = strings.Fields(value), true
	case "error":
		e.errors = strings.Fields(value)
	case "title":
		e.Title = value
	case "cause":
		e.Cause = value
	case "remedy":
		e.Remedy = value
	case "source":
		e.Source = value
	default:
		return fmt.Errorf("there is no field %q", name)
	}
	return nil
}

// says reports whether the entry's words are in a text, which is in lower case.
func (e *entry) says(text, class string) bool {
	return e.fits(class) && slices.ContainsFunc(e.words, func(parts []pattern) bool {
		return !slices.ContainsFunc(parts, func(part pattern) bool { return !part.matches(text) })
	})
}

// fits reports whether the entry is for replies of a class; "" if there was no reply.
func (e *entry) fits(class string) bool {
	switch e.class {
	case "0":
		return class == ""
	case "4":
		return class == "4"
	case "5":
		return class != "4"
	}
	return true
}

// Known reports whether an explanation has the reason.
func Known(reason string) bool {
	return slices.ContainsFunc(table(), func(e *entry) bool { return e.Reason == reason })
}
