package provider

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
)

// outcome is what a provider's name for an event means in this package. The zero outcome is that of an
// unknown name.
type outcome struct {
	kind    Kind
	bounce  Bounce
	reason  Reason
	ignored string // one of IgnoredNames; such an event is not used
}

// outcomes are the outcomes without an argument, by their names in words.tsv.
var outcomes = map[string]outcome{
	"accepted":     {kind: Accepted},
	"delivered":    {kind: Delivered},
	"deferred":     {kind: Deferred},
	"hard":         {kind: Bounced, bounce: Hard, reason: ReasonBounced},
	"soft":         {kind: Bounced, bounce: Soft, reason: ReasonBounced},
	"invalid":      {kind: Bounced, bounce: Hard, reason: ReasonInvalid},
	"refused":      {kind: Bounced, bounce: Soft, reason: ReasonBlocked},
	"timed_out":    {kind: Bounced, bounce: Soft, reason: ReasonTimedOut},
	"complained":   {kind: Complained, reason: ReasonSpam},
	"unsubscribed": {kind: Unsubscribed, reason: ReasonUnsubscribed},
	"opened":       {kind: Opened},
	"clicked":      {kind: Clicked},
}

// The outcomes that the readers choose themselves.
var (
	deferred     = outcomes["deferred"]
	hardBounce   = outcomes["hard"]
	softBounce   = outcomes["soft"]
	refused      = outcomes["refused"]
	complained   = outcomes["complained"]
	unsubscribed = outcomes["unsubscribed"]
)

//go:embed words.tsv
var wordsFile string

// words reads words.tsv once. It panics if a line does not parse.
var words = sync.OnceValue(func() map[string]outcome {
	all := map[string]outcome{}
	for n, line := range strings.Split(wordsFile, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "\t")
		m, ok := outcomeNamed(columns[len(columns)-1])
		if len(columns) != 3 || !ok {
			panic(fmt.Sprintf("words.tsv line %d: want provider, word and outcome", n+1))
		}
		all[columns[0]+"\t"+columns[1]] = m
	}
	return all
})

func outcomeNamed(s string) (outcome, bool) {
	name, argument, _ := strings.Cut(s, " ")
	switch name {
	case "dropped":
		return dropped(Reason(argument)), true
	case "ignored":
		return ignored(argument), true
	}
	m, ok := outcomes[s]
	return m, ok
}

// means returns the outcome of a provider's word. It is zero for an unknown one.
func (n Name) means(word string) outcome { return words()[string(n)+"\t"+word] }

func dropped(reason Reason) outcome { return outcome{kind: Dropped, reason: reason} }

func ignored(name string) outcome { return outcome{ignored: name} }

// fact gives an event this outcome. It makes one for each of the recipients, or one event without recipients.
// Only a click keeps its URL.
func (m outcome) fact(word string, e Event, recipients ...string) (fact, error) {
	switch {
	case m.ignored != "":
		return ignore(m.ignored, word)
	case m.kind == "":
		return unknown(word)
	}
	e.Kind, e.Bounce, e.Reason = m.kind, m.bounce, m.reason
	if e.Kind != Clicked {
		e.URL = ""
	}
	return forAll(word, e, recipients)
}
