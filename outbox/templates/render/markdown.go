package render

import (
	"fmt"
	"strings"

	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// Limits of Markdown. The parser reads each nested line and each unclosed bracket again for all earlier ones.
// Within these limits that takes milliseconds; without, minutes.
const (
	maxMarkdown         = 64 << 10 // bytes, because parsing cannot be interrupted
	maxMarkdownNesting  = 32
	maxMarkdownBrackets = 2000
	maxMarkdownColumns  = 64 // of a table, whose every row is filled up to as many
)

// tooLarge refuses Markdown that would take too long to parse.
func tooLarge(source string) error {
	if len(source) > maxMarkdown {
		return limitError("the Markdown is longer than %d bytes", maxMarkdown)
	}
	for line := range strings.Lines(source) {
		if strings.Count(line, "|") > maxMarkdownColumns {
			return limitError("a table of the Markdown has more than %d columns", maxMarkdownColumns)
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
			return limitError("the Markdown is nested more than %d deep", maxMarkdownNesting)
		}
	}
	for _, c := range "[<`*_~" {
		if strings.Count(source, string(c)) > maxMarkdownBrackets {
			return limitError("the Markdown has more than %d of %c", maxMarkdownBrackets, c)
		}
	}
	return nil
}

func limitError(format string, args ...any) error {
	return &handlebars.Error{Message: fmt.Sprintf(format, args...), Err: handlebars.ErrLimit}
}
