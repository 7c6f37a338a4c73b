package replies

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// pattern is a regular expression of the table. Plain words rule most texts out first, which takes a
// hundredth of the time.
type pattern struct {
	re    *regexp.Regexp
	words []string // every match contains one of them; nil if none is known
}

// gap is what may separate words. It ends with its sentence; a stop in a host name doesn't end one.
var gap = regexp.MustCompile(`\.(\{0,\d+\})`)

func newPattern(text string) (pattern, error) {
	text = gap.ReplaceAllString(text, `(?:[^.;!?]|[.;!?]\S)$1`)
	re, err := regexp.Compile(text)
	if err != nil {
		return pattern{}, err
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	return pattern{re, wordsOf(parsed)}, nil
}

// matches reports whether the expression matches in a text, which is in lower case.
func (p pattern) matches(text string) bool {
	contains := func(word string) bool { return strings.Contains(text, word) }
	return (p.words == nil || slices.ContainsFunc(p.words, contains)) && p.re.MatchString(text)
}

// wordsOf returns words such that every match contains one of them; nil if none is known.
func wordsOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return wordsOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return wordsOf(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if words := wordsOf(sub); shortest(words) > shortest(best) {
				best = words
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			words := wordsOf(sub)
			if words == nil {
				return nil
			}
			all = append(all, words...)
		}
		return all
	}
	return nil
}

// shortest returns the length of the shortest word; 0 if there is none.
func shortest(words []string) int {
	least := 0
	for _, w := range words {
		if least == 0 || len(w) < least {
			least = len(w)
		}
	}
	return least
}
