package bounce

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

//go:embed forms.tsv
var formsFile string

//go:embed wording.tsv
var wordingFile string

// form is one line of forms.tsv.
type form struct {
	name, means, where string
	pattern            *regexp.Regexp
	sample             string
}

// wording is one line of wording.tsv.
type wording struct {
	subject string // replaces the last two numbers of a status that is only a class, such as "4.7"
	code    int    // reply code to judge by; 0: by the outcome that the mail reports
	status  string // enhanced code to judge by; empty: none
	local   bool   // it is the server's own trouble, whatever its status says
	// a full mailbox or a loop: clear enough to overrule smtpsend, which reads these as refusals of ours
	plain   bool
	pattern *regexp.Regexp
	sample  string
}

// forms reads forms.tsv once. A line that does not parse is a bug, which a test finds.
var forms = sync.OnceValue(func() []form {
	var out []form
	readTable(formsFile, 5, func(columns []string) error {
		pattern, err := regexp.Compile(columns[3])
		out = append(out, form{columns[0], columns[1], columns[2], pattern, columns[4]})
		return err
	})
	return out
})

var wordings = sync.OnceValue(func() []wording {
	var out []wording
	readTable(wordingFile, 5, func(columns []string) error {
		pattern, err := regexp.Compile(columns[3])
		w := wording{subject: columns[0], pattern: pattern, sample: columns[4]}
		if columns[1] != "-" {
			_, err = fmt.Sscan(columns[1], &w.code)
		}
		if columns[2] != "-" {
			w.status, w.local = columns[2], columns[2] == "4.3.0"
			w.plain = columns[2] == "5.2.2" || columns[2] == "4.4.6"
		}
		out = append(out, w)
		return err
	})
	return out
})

// readTable calls line with the cells of each line of a table.
func readTable(file string, columns int, line func([]string) error) {
	for n, text := range strings.Split(file, "\n") {
		if text == "" || text[0] == '#' {
			continue
		}
		cut := strings.Split(text, "\t")
		err := fmt.Errorf("%d columns, want %d", len(cut), columns)
		if len(cut) == columns {
			err = line(cut)
		}
		if err != nil {
			panic(fmt.Sprintf("bounce: line %d of a table: %v", n+1, err))
		}
	}
}

// findForm returns the first rule of a meaning that matches a text of the given place.
func findForm(means, where, text string) (form, bool) {
	if text == "" {
		return form{}, false
	}
	for _, f := range forms() {
		if f.means == means && f.where == where && f.pattern.MatchString(text) {
			return f, true
		}
	}
	return form{}, false
}

// findWording returns the first rule that matches a server's text without a reply.
func findWording(text string) (wording, bool) {
	text = strings.ToLower(text)
	for _, w := range wordings() {
		if w.pattern.MatchString(text) {
			return w, true
		}
	}
	return wording{}, false
}
