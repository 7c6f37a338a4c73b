package bounce

import (
	"regexp"
	"strings"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// quoted is an SMTP reply found in a text.
type quoted struct {
	code     int    // 0 if there was only an enhanced code
	enhanced string // empty if there is none, or one of another class than the code
	words    string
	before   string // the line before it, if it is of the same transcript
}

var (
	// replyCode matches a code of refusal (and 250, 251 of success) that is not part of a longer number,
	// address or version.
	replyCode = regexp.MustCompile(
		`(?:^|[\s"'(<\[:;,=>/])(25[012]|421|43[0-9]|45[0-9]|471|50[0-4]|51[0-9]|52[0-9]|53[0-9]|54[0-9]|55[0-9]|57[0-9])(?:[\s:,;)\]>"-]|$)`)
	enhanced = regexp.MustCompile(`(?:^|[^\d.])([245]\.\d{1,3}\.\d{1,3})(?:[^\d.]|\.?$|\.\s)`)
	adjacent = regexp.MustCompile(`^[\s#(<:,\[-]*([245]\.\d{1,3}\.\d{1,3})(?:[^\d.]|\.?$|\.\s)`)
)

// findReply returns the SMTP reply that a text quotes, and its text up to the next empty line.
func findReply(text string) (quoted, bool) {
	at := replyCode.FindStringSubmatchIndex(text)
	if at == nil {
		if m := enhanced.FindStringSubmatch(text); m != nil && m[1][0] != '2' {
			return quoted{enhanced: m[1], words: text}, true
		}
		return quoted{}, false
	}
	digits := text[at[2]:at[3]]
	q := quoted{code: int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0')}
	after := text[at[3]:]
	for _, m := range [][]string{enhanced.FindStringSubmatch(text[:at[2]]), enhanced.FindStringSubmatch(after),
		adjacent.FindStringSubmatch(after)} { // the last is the most certain
		if m != nil {
			q.enhanced = m[1]
		}
	}
	if !strings.HasPrefix(q.enhanced, digits[:1]) {
		q.enhanced = ""
	}
	q.before = lineBefore(text[:at[2]])
	q.words = plainWords(ownLines(after, digits), digits, q.enhanced)
	return q, true
}

// lineBefore returns the last full line of a text: local mailers write before the server's summary.
func lineBefore(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 {
		return ""
	}
	return message.OneLine(lines[len(lines)-2], maxDiagnostic)
}

var nextReply = regexp.MustCompile(`\n\s*(?:>>>|<<<|\.\.\. ?while talking|while talking|([245]\d\d)[ -])`)

// ownLines returns a text up to the next command or reply of a transcript.
func ownLines(text, code string) string {
	for at := 0; ; {
		m := nextReply.FindStringSubmatchIndex(text[at:])
		if m == nil {
			return text
		}
		if m[2] < 0 || text[at+m[2]:at+m[3]] != code {
			return text[:at+m[0]]
		}
		at += m[1]
	}
}

// plainWords returns a reply without the codes at the start of its lines.
func plainWords(text, code, enhanced string) string {
	for _, lead := range []string{code + "-" + enhanced, code + " " + enhanced} {
		text = strings.ReplaceAll(text, lead, " ")
	}
	text = strings.TrimLeft(text, " -:#(")
	if enhanced != "" {
		text = strings.TrimPrefix(text, enhanced)
	}
	return message.OneLine(text, maxDiagnostic)
}

// phases map several servers' wording to the phase of a reply. The first match counts.
var phases = []struct {
	phase   smtpsend.Phase
	pattern *regexp.Regexp
}{
	{smtpsend.PhaseRcpt, regexp.MustCompile(
		`(?i)\[rcpt_to\]|(after|in reply to|in response to|to|our|state|command:?|>>>) \(?rcpt\b|rcpt to:? ?<|rcpt command|recipient address rejected`)},
	{smtpsend.PhaseMail, regexp.MustCompile(
		`(?i)\[mail_from\]|(after|in reply to|in response to|our|command:?|>>>) \(?mail( from)?\b`)},
	{smtpsend.PhaseDot, regexp.MustCompile(
		`(?i)end of data|final data|end-of-data|after (sending )?data|>>> data|reply to data|\(?in reply to end|message body|\[bodY\]|\[data\]|message text`)},
	{smtpsend.PhaseGreeting, regexp.MustCompile(
		`(?i)initial connection|greeting|refused to talk to me|esmtp not accepting|\[connect\]|while connecting|upon connection`)},
	{smtpsend.PhaseEHLO, regexp.MustCompile(`(?i)(after|in reply to|>>>) \(?(helo|ehlo)\b|my name was rejected`)},
}

func phaseOf(text string) smtpsend.Phase {
	for _, p := range phases {
		if p.pattern.MatchString(text) {
			return p.phase
		}
	}
	return ""
}
