package render

import (
	"fmt"
	"strings"

	"github.com/postroom/postroom/templates/handlebars"
)

// Limits of Markdown. The parser reads each nested line and each unclosed bracket again for all earlier ones.
// Within these limits that takes milliseconds; without, minutes.
const (
	maxMarkdownNesting  = 32
	maxMarkdownBrackets = 2000
	maxMarkdownColumns  = 64 // of a table, whose every row is filled up to as many
)

// tooNested refuses Markdown that would take too long to parse.
func tooNested(source string) error {
	for line := range strings.Lines(source) {
		if strings.Count(line, "|") > maxMarkdownColumns {
			return &handlebars.Error{Message: fmt.Sprintf("a table of the Markdown has more than %d columns",
				maxMarkdownColumns), Err: handlebars.ErrLimit}
		}
		depth := 0
		for _, c := range line {
			if c == '>' || c == '-' || c == '*' || c == '+' {
				depth++
			} else if c != ' ' && c != '\t' && c != '.' && c != ')' && (c < '0' || c > '9') {
				break
			}
		}
		if depth > maxMarkdownNesting && strings.Trim(line, "-*_ \t\r\n") != "" {
			return &handlebars.Error{Message: fmt.Sprintf("the Markdown is nested more than %d deep",
				maxMarkdownNesting), Err: handlebars.ErrLimit}
		}
	}
	for _, c := range "[<`*_~" {
		if strings.Count(source, string(c)) > maxMarkdownBrackets {
			return &handlebars.Error{Message: fmt.Sprintf("the Markdown has more than %d of %c", maxMarkdownBrackets,
				c), Err: handlebars.ErrLimit}
		}
	}
	return nil
}
