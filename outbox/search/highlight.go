package search

import (
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/search/query"
)

// passageLength is the approximate length of a shown text, in bytes.
const passageLength = 240

// stretch is a match in a text, in bytes.
type stretch struct{ start, end int }

// mark splits a text into matches and other text.
func mark(text string, marks []query.Node) []api.Fragment {
	return cut(text, stretches(text, marks), 0, len(text))
}

// passage returns the part of a text with most matches close together, or its beginning.
func passage(text string, marks []query.Node) []api.Fragment {
	found := stretches(text, marks)
	start, best := 0, 0
	for i := range found {
		n := 0
		for n < len(found)-i && found[i+n].end <= found[i].start+passageLength*3/4 {
			n++
		}
		if n > best {
			start, best = found[i].start-passageLength/4, n
		}
	}
	start = edge(text, max(start, 0))
	end := len(text)
	if start+passageLength < len(text) {
		end = edge(text, start+passageLength)
	}
	for _, s := range found { // never cut a match
		if s.start < end && end < s.end {
			end = s.end
		}
	}
	fragments := cut(text, found, start, end)
	if len(fragments) == 0 {
		return fragments
	}
	if start > 0 {
		fragments = lead(fragments)
	}
	if end < len(text) {
		fragments = trail(fragments)
	}
	return fragments
}

// edge moves a position back to the start of a word, or of a character in a long word.
func edge(text string, at int) int {
	if at >= len(text) {
		return len(text)
	}
	if space := strings.LastIndexByte(text[:at], ' '); space >= 0 && at-space < 30 {
		return space + 1
	}
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}

func lead(f []api.Fragment) []api.Fragment {
	if f[0].Match {
		return append([]api.Fragment{{Text: "… "}}, f...)
	}
	f[0].Text = "… " + f[0].Text
	return f
}

func trail(f []api.Fragment) []api.Fragment {
	if last := len(f) - 1; !f[last].Match {
		f[last].Text = strings.TrimRight(f[last].Text, " ") + " …"
		return f
	}
	return append(f, api.Fragment{Text: " …"})
}

// cut returns the fragments of a text between two positions.
func cut(text string, found []stretch, start, end int) []api.Fragment {
	fragments := []api.Fragment{}
	add := func(from, to int, match bool) {
		if from < to {
			fragments = append(fragments, api.Fragment{Text: text[from:to], Match: match})
		}
	}
	at := start
	for _, s := range found {
		if s.start < at || s.end > end {
			continue
		}
		add(at, s.start, false)
		add(s.start, s.end, true)
		at = s.end
	}
	add(at, end, false)
	return fragments
}

// stretches returns the matches, sorted; overlapping ones are merged.
func stretches(text string, marks []query.Node) []stretch {
	if len(marks) == 0 || text == "" {
		return nil
	}
	words := query.Words(text)
	var found []stretch
	for i := range words {
		n := 0 // number of matching words from here
		for _, m := range marks {
			n = max(n, matches(words[i:], m))
		}
		if n == 0 {
			continue
		}
		s := stretch{words[i].Start, words[i+n-1].End}
		if last := len(found) - 1; last >= 0 && s.start <= found[last].end {
			found[last].end = max(found[last].end, s.end)
			continue
		}
		found = append(found, s)
	}
	return found
}

// matches returns how many words at the beginning match n, or 0.
func matches(words []query.Word, n query.Node) int {
	switch n := n.(type) {
	case query.Term:
		if words[0].Text == n.Value {
			return 1
		}
	case query.Prefix:
		if strings.HasPrefix(words[0].Text, n.Value) {
			return 1
		}
	case query.Phrase:
		if len(words) < len(n.Words) {
			return 0
		}
		for i, word := range n.Words {
			begins := n.Prefix && i == len(n.Words)-1 && strings.HasPrefix(words[i].Text, word)
			if words[i].Text != word && !begins {
				return 0
			}
		}
		return len(n.Words)
	}
	return 0
}
