package config

import (
	"fmt"
	"strings"
)

// Problem is one fault of the settings.
type Problem struct {
	// path of the setting, or the unknown key as it was written; empty for a fault of the whole file
	Key     string
	Value   string // the value, masked if it is secret; empty if it does not help
	Source  string // where it was given: a file and line, an environment variable, a flag
	Message string // what is wrong and what to write instead
}

// String returns the problem in one line.
func (p Problem) String() string {
	text := p.Message
	if p.Value != "" {
		text = fmt.Sprintf("%q %s", p.Value, text)
	}
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Source != "" {
		text += " (" + p.Source + ")"
	}
	return text
}

// Invalid is the error for invalid settings. It contains every fault: unknown keys and unreadable files
// first, then wrong values.
type Invalid struct{ Problems []Problem }

// Error returns the problems, one a line.
func (e *Invalid) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	if len(lines) == 1 {
		return "invalid configuration: " + lines[0]
	}
	return fmt.Sprintf("invalid configuration, %d errors:\n  %s", len(lines), strings.Join(lines, "\n  "))
}

// didYouMean suggests the known names that are close to a misspelt one, or returns "".
// These are all that end in the same word, if only the position of the word is wrong; otherwise the one with
// the fewest letters to change.
func didYouMean(written string, known []string) string {
	plain := plainName(written)
	best, least := "", max(2, len(plain)/4)+1
	var elsewhere []string
	for _, k := range known {
		if d := distance(plain, plainName(k)); d < least {
			best, least = k, d
		}
		if lastWord(k) == lastWord(written) {
			elsewhere = append(elsewhere, k)
		}
	}
	if least > 1 && len(elsewhere) > 0 {
		best = strings.Join(elsewhere, " or ")
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// plainName makes max_size, maxsize and max-size equal to maxSize.
func plainName(s string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s))
}

func lastWord(path string) string { return plainName(path[strings.LastIndex(path, ".")+1:]) }

// distance returns the number of letters to insert, delete or replace to get from a to b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
