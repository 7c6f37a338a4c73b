package bounce

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Bounds of the text that is searched. Notices are short; the rest is the returned message.
const (
	maxNoticeLines = 1000
	maxNoticeLine  = 2000
	maxNoticeText  = 16 << 10
)

// notice is the readable text of an email, up to the message it returns.
type notice struct {
	lines    []string
	flat     string // its beginning in lower case, with single spaces
	returned header // header of the message returned within the text
}

// newNotice extracts the text of parts.
func newNotice(texts []*part) notice {
	var n notice
	plain := false
	for _, p := range texts {
		if p.media == "text/html" && plain {
			continue // most likely the same text again
		}
		plain = plain || p.media != "text/html"
		lines := strings.SplitN(p.text(), "\n", maxNoticeLines+1)
		own, rest := cutReturned(lines[:min(len(lines), maxNoticeLines)])
		n.lines = append(n.lines, own...)
		if len(rest) > 0 && n.returned == nil {
			n.returned = headerIn(rest)
		}
		if len(n.lines) >= maxNoticeLines {
			break
		}
	}
	size := 0
	for i, line := range n.lines {
		n.lines[i] = strings.TrimRight(line[:min(len(line), maxNoticeLine)], " \t")
		if size += len(n.lines[i]); size > maxNoticeText {
			n.lines = n.lines[:i]
			break
		}
	}
	n.flat = strings.Join(strings.Fields(strings.ToLower(strings.Join(n.lines, " "))), " ")
	return n
}

var (
	headerLine = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,60}:(\s|$)`)
	// proofLine matches a header field that no one types and that notices do not quote alone.
	proofLine = regexp.MustCompile(
		`(?i)^(received|return-path|message-id|dkim-signature|x-received|mime-version|arc-seal|x-google-dkim-signature):\s`)
)

// cutReturned splits lines where the returned message begins: at a line that says so, or else at the first of
// its header fields.
func cutReturned(lines []string) (own, rest []string) {
	for i, line := range lines {
		if i == 0 && !headerLine.MatchString(line) {
			continue // the title of the notice may resemble it
		}
		lower := strings.ToLower(strings.TrimRight(line[:min(len(line), 200)], " \r"))
		if _, ok := findForm("original", "line", lower); ok && i > 0 && holdsHeader(lines[i+1:]) {
			return lines[:i], lines[i+1:]
		}
		if proofLine.MatchString(strings.TrimLeft(line, " \t>")) && headerRun(lines[i:]) >= 3 &&
			!quotesFields(lines[:i]) {
			start := i
			for start > 0 && headerLine.MatchString(strings.TrimLeft(lines[start-1], " \t>")) {
				start--
			}
			return lines[:start], lines[start:]
		}
	}
	return lines, nil
}

// quotesFields reports whether a notice announces some fields of the message, and continues after them.
func quotesFields(before []string) bool {
	return strings.Contains(strings.ToLower(strings.Join(before[max(0, len(before)-6):], "\n")),
		"following header fields")
}

// holdsHeader reports whether a message follows soon, or nothing does. "Returned message:" may also precede
// the reason.
func holdsHeader(lines []string) bool {
	for i := 0; i < len(lines) && i < 8; i++ {
		if headerLine.MatchString(strings.TrimLeft(lines[i], " \t>")) && headerRun(lines[i:]) >= 2 ||
			strings.HasPrefix(lines[i], "From ") {
			return true
		}
	}
	return strings.TrimSpace(strings.Join(lines[:min(len(lines), 8)], "")) == ""
}

// headerRun returns the number of consecutive header fields, folded lines included.
func headerRun(lines []string) int {
	fields := 0
	for i := 0; i < len(lines) && i < 40; i++ {
		line := strings.TrimLeft(lines[i], " \t>")
		switch {
		case headerLine.MatchString(line):
			fields++
		case line == "" || len(lines[i]) == len(line):
			return fields
		}
	}
	return fields
}

// headerIn parses the header of a message in the text, which may be indented.
func headerIn(lines []string) header {
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " \t>"))
		if !headerLine.MatchString(line[indent:]) || i > 30 {
			if i > 30 {
				break
			}
			continue
		}
		var b strings.Builder
		for _, next := range lines[i:min(len(lines), i+maxFields)] {
			b.WriteString(next[min(indent, len(next)-len(strings.TrimLeft(next, " \t>"))):])
			b.WriteByte('\n')
		}
		h, _ := splitHeader([]byte(b.String()))
		return h
	}
	return nil
}

// daemonSigns returns the number of signs that a server wrote this email: 0 to 2.
func (m *mail) daemonSigns() int {
	signs := 0
	if m.nullPath() {
		signs++
	}
	for _, where := range []string{"from", "x-failed-recipients", "content-type", "x-mlserver"} {
		if _, ok := findForm("daemon", where, strings.ToLower(words(m.header.get(where)))); ok {
			signs++
		}
	}
	if _, ok := findForm("clerk", "from", strings.ToLower(words(m.header.get("from")))); ok && m.returns() {
		signs++
	}
	return min(signs, 2)
}

// nullPath reports whether the mail was sent from <>, as RFC 5321 section 4.5.5 requires of notices.
func (m *mail) nullPath() bool { return strings.TrimSpace(m.header.get("return-path")) == "<>" }

// returns reports whether the mail contains the message it is about, or its header.
func (m *mail) returns() bool { return m.returned != nil || m.notice.returned != nil }

func (m *mail) subject() string { return strings.ToLower(words(m.header.get("subject"))) }

// readNotice reads a notice that a mail server wrote as text. It requires three signs. The signs are: a
// server wrote it (up to two), a notice's wording in the text (two), in the subject (one), and a quoted SMTP
// reply about an address, or a reason next to the returned message (one). If no known server has written it,
// all the others are required, and the returned message.
func (m *mail) readNotice() (Report, bool) {
	name, action, signs := m.outcome()
	facts := m.noticeFacts()
	if slices.ContainsFunc(facts, func(f fact) bool {
		_, quotes := findReply(f.diagnostic)
		return quotes || signs > 0 && m.returns() && hasReason(f.diagnostic)
	}) {
		signs++
	}
	daemon := m.daemonSigns()
	unsigned := daemon == 0 && (signs < 4 || !m.returns() || passedOn.MatchString(m.subject()))
	if unsigned || signs+daemon < 3 || len(facts) == 0 && (name == "" || !m.nullPath()) {
		return Report{}, false
	}
	// James answers with the subject of the message.
	if _, ok := findForm("other", "subject", m.subject()); ok && !m.returns() && name != "james" {
		return Report{}, false
	}
	name = cmp.Or(name, "text")
	for i, f := range facts {
		facts[i].action = action
		if q, _ := findReply(f.diagnostic); action == ActionDelivered && q.code >= 400 {
			facts[i].action = ActionFailed
		}
	}
	return m.conclude(Report{Form: name}, facts)
}

var forGood = regexp.MustCompile(
	`permanent error|failed permanently|giving up|given up|permanent fatal|will not be retried|no further (delivery )?attempts`)

// passedOn matches the subject of an email that a person forwards or answers.
var passedOn = regexp.MustCompile(`^\W*(fwd?|wg|tr|rv|re|aw|sv|antw)\s*:`)

// outcome returns the meaning of a notice's words, and the number of their signs.
func (m *mail) outcome() (name string, action Action, signs int) {
	action = ActionFailed
	failed, inBody := findForm("failed", "body", m.notice.flat)
	delayed, waits := findForm("delayed", "body", m.notice.flat)
	subject, inSubject := findForm("failed", "subject", m.subject())
	late, lateSubject := findForm("delayed", "subject", m.subject())
	if waits && !forGood.MatchString(m.notice.flat) || lateSubject && !inBody {
		action = ActionDelayed
	}
	_, arrived := findForm("delivered", "body", m.notice.flat)
	if arrived && !forGood.MatchString(m.notice.flat) {
		action = ActionDelivered
	}
	switch {
	case waits && action == ActionDelayed:
		name = delayed.name
	case inBody:
		name = failed.name
	case lateSubject:
		name = late.name
	case inSubject:
		name = subject.name
	}
	if inBody || waits || arrived {
		signs += 2
	}
	if inSubject || lateSubject {
		signs++
	}
	return name, action, signs
}
