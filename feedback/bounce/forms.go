package bounce

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/textlines"
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
	code    int    // reply code to judge by; 0 for the outcome that the mail reports
	status  string // enhanced code to judge by; empty if none
	local   bool   // it is the server's own problem, whatever its status says
	// a full mailbox or a loop: clear enough to overrule smtpsend, which reads these as refusals of ours
	plain   bool
	pattern *regexp.Regexp
	sample  string
}

// forms reads forms.tsv once. A line that does not parse is a bug, which a test finds.
var forms = sync.OnceValue(func() []form {
	var out []form
	for _, row := range textlines.Table(formsFile, 5) {
		out = append(out, form{row[0], row[1], row[2], regexp.MustCompile(row[3]), row[4]})
	}
	return out
})

var wordings = sync.OnceValue(func() []wording {
	var out []wording
	for _, row := range textlines.Table(wordingFile, 5) {
		w := wording{subject: row[0], pattern: regexp.MustCompile(row[3]), sample: row[4]}
		w.code, _ = strconv.Atoi(row[1]) // 0 for -
		if row[2] != "-" {
			w.status, w.local = row[2], row[2] == "4.3.0"
			w.plain = row[2] == "5.2.2" || row[2] == "4.4.6"
		}
		out = append(out, w)
	}
	return out
})

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
