package smtpsend

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/textlines"
)

//go:embed rules.tsv
var rulesFile string

// effect is the meaning of a rule's match.
type effect string

// The effects, in the first column of rules.tsv.
const (
	effectThrottleRecipient   effect = "throttle-recipient"
	effectThrottleAccount     effect = "throttle-account"
	effectThrottleDestination effect = "throttle-destination"
	effectThrottleDomain      effect = "throttle-domain"
	effectThrottleConnection  effect = "throttle-connection"
	effectReconnect           effect = "reconnect" // soft; a new connection may be used immediately
	// soft; at RCPT the next transaction may follow immediately
	effectNext     effect = "next"
	effectAuth     effect = "auth"     // the account has to be corrected
	effectSize     effect = "size"     // this message is too big
	effectFull     effect = "full"     // mailbox full: hard for a 5xx, never suppressed
	effectPolicy   effect = "policy"   // this message or sender is not wanted
	effectBlock    effect = "block"    // our address or domain is not wanted
	effectGreylist effect = "greylist" // soft
	effectGone     effect = "gone"     // hard, without suppression
	effectUnknown  effect = "unknown"  // hard, suppressed
	// unknown, but only at RCPT or if the enhanced code agrees
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

// rules reads rules.tsv, once. It panics if a line does not parse.
var rules = sync.OnceValue(func() []rule {
	var out []rule
	for _, row := range textlines.Table(rulesFile, 4) {
		r := rule{effect: effect(row[0]), class: row[1][0], pattern: row[2], sample: row[3]}
		for part := range strings.SplitSeq(r.pattern, " && ") {
			r.all = append(r.all, regexp.MustCompile(part))
		}
		out = append(out, r)
	}
	return out
})

// wordsJudged is how many bytes of a reply's text are compared with the rules: two lines of a reply at their
// longest (RFC 5321, section 4.5.3.1.5). Each byte takes about 10 microseconds.
const wordsJudged = 1024

// matchRule returns the first rule that matches a reply's code and the beginning of its text.
func matchRule(code int, text string) (rule, bool) {
	text = strings.ToLower(text[:min(len(text), wordsJudged)])
	for _, r := range rules() {
		missing := func(part *regexp.Regexp) bool { return !part.MatchString(text) }
		if (r.class == '*' || int(r.class-'0') == code/100) && !slices.ContainsFunc(r.all, missing) {
			return r, true
		}
	}
	return rule{}, false
}
