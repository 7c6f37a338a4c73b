package provider

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/textlines"
)

// outcome is the meaning of a provider's name for an event in this package. The zero outcome is for an
// unknown name.
type outcome struct {
	kind    Kind
	bounce  Bounce
	reason  Reason
	ignored string // its name, as in Ignored; such an event is not used
}

//go:embed words.tsv
var wordsFile string

// words reads words.tsv once. It panics if a line does not parse.
var words = sync.OnceValue(func() map[string]outcome {
	all := map[string]outcome{}
	for _, columns := range textlines.Table(wordsFile, 5) {
		for i, cell := range columns {
			columns[i] = strings.TrimPrefix(cell, "-")
		}
		m := outcome{kind: Kind(columns[2]), bounce: Bounce(columns[3]), reason: Reason(columns[4])}
		if columns[2] == "ignored" {
			m = ignored(columns[4])
		}
		all[columns[0]+"\t"+columns[1]] = m
	}
	return all
})

// means returns the outcome of the first word that a provider knows. It is zero if there is none.
func (n Name) means(all ...string) outcome {
	for _, word := range all {
		if m, ok := words()[string(n)+"\t"+word]; ok {
			return m
		}
	}
	return outcome{}
}

func dropped(reason Reason) outcome { return outcome{kind: Dropped, reason: reason} }

func ignored(name string) outcome { return outcome{ignored: name} }

// fact gives an event this outcome. It makes one for each of the recipients, or one event without recipients.
// Only a click keeps its URL.
func (m outcome) fact(word string, e Event, recipients ...string) (fact, error) {
	switch {
	case m.ignored != "":
		return ignore(m.ignored, word, e)
	case m.kind == "":
		return unknown(word, e)
	}
	e.Kind, e.Bounce, e.Reason = m.kind, m.bounce, m.reason
	if e.Kind != Clicked {
		e.URL = ""
	}
	return forAll(word, e, recipients)
}
