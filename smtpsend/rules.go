package smtpsend

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

//go:embed rules.tsv
var rulesFile string

// effect is what a rule's match leads to.
type effect string

// The effects, in the first column of rules.tsv.
const (
	effectThrottleRecipient   effect = "throttle-recipient"
	effectThrottleAccount     effect = "throttle-account"
	effectThrottleDestination effect = "throttle-destination"
	effectThrottleConnection  effect = "throttle-connection"
	effectReconnect           effect = "reconnect" // soft; a new connection may be used at once
	// soft; at RCPT the next transaction may follow at once
	effectNext effect = "next"
	effectAuth effect = "auth" // the account has to be put right
	effectSize effect = "size" // this message is too big
	// the mailbox is: hard when the relay says 5xx, but never a reason to suppress
	effectFull     effect = "full"
	effectPolicy   effect = "policy"   // this message or sender is not wanted
	effectBlock    effect = "block"    // our address or domain is not wanted
	effectGreylist effect = "greylist" // soft
	effectGone     effect = "gone"     // hard, without suppression
	effectUnknown  effect = "unknown"  // hard, suppressed
	// as unknown, but only at RCPT or with an enhanced code that agrees
	effectRejectedAddress effect = "rejected-address"
	effectTransient       effect = "transient" // soft in spite of a 5xx
)

// rule is one line of rules.tsv.
type rule struct {
	effect  effect
	class   byte // '4', '5' or '*'
	pattern string
	all     []*regexp.Regexp // the pattern's parts
	sample  string
}

// matches reports whether every part of the pattern is in the words, which are in lower case.
func (r rule) matches(words string) bool {
	for _, part := range r.all {
		if !part.MatchString(words) {
			return false
		}
	}
	return true
}

// rules reads rules.tsv, once. A line that does not parse is a mistake in the program, which a test finds.
var rules = sync.OnceValue(func() []rule {
	parsed, err := parseRules(rulesFile)
	if err != nil {
		panic(err)
	}
	return parsed
})

func parseRules(file string) ([]rule, error) {
	var out []rule
	for n, line := range strings.Split(file, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 || len(columns[1]) != 1 {
			return nil, fmt.Errorf("rules.tsv line %d: want effect, class, pattern and sample", n+1)
		}
		r := rule{effect: effect(columns[0]), class: columns[1][0], pattern: columns[2], sample: columns[3]}
		for part := range strings.SplitSeq(columns[2], " && ") {
			compiled, err := regexp.Compile(part)
			if err != nil {
				return nil, fmt.Errorf("rules.tsv line %d: %w", n+1, err)
			}
			r.all = append(r.all, compiled)
		}
		out = append(out, r)
	}
	return out, nil
}

// matchRule finds the first rule for a reply of the given code and words.
func matchRule(code int, text string) (rule, bool) {
	text = strings.ToLower(text)
	for _, r := range rules() {
		if (r.class == '*' || int(r.class-'0') == code/100) && r.matches(text) {
			return r, true
		}
	}
	return rule{}, false
}
