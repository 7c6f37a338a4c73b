package mail

import (
	_ "embed" // each language's texts
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	xlanguage "golang.org/x/text/language"
)

// words are a language's texts. All languages in words.json are written from left to right; the html relies
// on it.
type words struct {
	Summary   string            // what the mail is
	Summaries map[string]string // the same, by the mode of its schedule
	Nothing   string
	Updates   forms
	People    forms // if none has a name
	Others    forms
	And       string // {a} and {b}
	Label     string // {a}: {b}
	More      forms  // after the {lead} of a subject
	Rest      forms  // in so many {groups}
	Groups    forms
	Shown     shownWords
}

// forms are the plural forms of a phrase about {n} things, by their names in outbox/templates/locale. A form
// that is missing is "other".
type forms map[string]string

// shownWords are the words that the sources of the mail print.
type shownWords struct {
	Open        string `json:"open"`
	All         string `json:"all"` // the link to the feed
	Preferences string `json:"preferences"`
	Unsubscribe string `json:"unsubscribe"`
	Zone        string `json:"zone"` // the times'; {zone} in words.json
}

//go:embed words.json
var wordsFile []byte

// known returns the words by language.
var known = sync.OnceValues(func() (map[string]*words, error) {
	var all map[string]*words
	if err := json.Unmarshal(wordsFile, &all); err != nil {
		return nil, fmt.Errorf("read words.json of digests: %w", err)
	}
	return all, nil
})

// maxTag is longer than any valid tag; anonymous clients may send tags.
const maxTag = 64

// language returns the language of a tag such as "de-AT": "de".
func language(tag string) string {
	name, _, _ := strings.Cut(strings.ReplaceAll(tag, "_", "-"), "-")
	return strings.ToLower(name)
}

// direction returns the direction in which a locale is written: ltr or rtl.
func direction(tag string) string {
	if len(tag) > maxTag {
		return "ltr"
	}
	script, _ := xlanguage.Make(tag).Script()
	switch script.String() {
	case "Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa":
		return "rtl"
	}
	return "ltr"
}

// fill puts values, each after its name, into the places of a pattern. A place that is in a value stays.
func fill(pattern string, pairs ...string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(pattern, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, _ := strings.Cut(rest, "}")
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				out.WriteString(pairs[i+1])
			}
		}
		pattern = after
	}
}
