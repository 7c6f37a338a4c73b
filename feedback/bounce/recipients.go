package bounce

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const address = `([^\s<>()\[\],;:"'|=：；，、。（）＜＞「」【】]{1,64}@[\pL\pN.-]{1,250}[\pL\pN])`

// pattern is a regular expression that is compiled when it is first used. Those with long repetitions would
// take milliseconds of each start of the program.
type pattern func() *regexp.Regexp

func late(expression string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// The ways in which lines name a recipient, the most certain first. Only the most certain way that a notice
// uses counts.
var (
	// "<ann@example.com>: reason", "ann@example.com on Thu, ...", "ann@example.com [User unknown]"
	leading = late(`^[\s>*"'(\[•·-]*(?:<?mailto:)?<?"?` + address + `"?>?(.*)$`)
	// "c=US;a= ;p=Example;dda:SMTP=ann@example.com; on Thu, ..."
	x400 = late(`(?i)^\s*c=[A-Z]{0,3};.*smtp=` + address + `(.*)$`)
	// "<ann@example.com>: reason", and nothing but that
	pointed = late(`^<` + address + `>(:.*)$`)
	// "554 5.1.1 <ann@example.com>... User unknown"
	transcript = late(`^\s*[45]\d\d[ -](?:[45]\.\d{1,3}\.\d{1,3} )?<` + address + `>(.*)$`)
	// "Recipient: <ann@example.com>", "an error delivering your mail to <ann@example.com>."
	labelled = late(
		`(?i)(?:recipients?|\bto|address(?:es)?|\buser|mailbox|\bfor|deliver\w*|failed|attempts|\bin|host|宛先|受信者|收件人|收信人|发送到|投递到|送达|받는 ?사람|수신자)[^@<:]{0,40}?[: ：]\s*["'(\[]?(?:smtp:)?<?` + address + `>?(.*)$`)
	// ">>> RCPT To:<ann@example.com>"
	command = late(`(?i)RCPT TO: ?<?` + address + `>?(.*)$`)
	// "... <ann@example.com> ..."
	anywhere = late(`<` + address + `>(.*)$`)
)

// talking matches the line where a transcript goes on to the next server.
var talking = regexp.MustCompile(`(?i)^(\.\.\. )?while talking to `)

// echo matches a line of the message's own header that a notice quotes. It names no failed recipient.
var echo = regexp.MustCompile(
	`(?i)^\s*(to|cc|subject|date|sent|message-id|reply-to|return-path|(?:sender|from)(?: address)?|received)\s*:`)

// noticeFacts returns the recipients in a notice, and the text about each.
func (m *mail) noticeFacts() []fact {
	known := addresses(strings.Join(m.header.all("x-failed-recipients"), ","), m.options.MaxRecipients)
	own := m.ownAddresses()
	found := m.collectFacts(known, own, leading, transcript, x400)
	if len(found) == 0 { // mail to the sender's own address may fail too
		found = m.collectFacts(known, m.writers(), pointed)
	}
	for _, pattern := range []pattern{labelled, command, anywhere} {
		if len(found) == 0 {
			found = m.collectFacts(known, own, pattern)
		}
	}
	if len(found) == 0 { // qmail's form is clear enough for the sender's own address
		found = m.collectFacts(known, nil, pointed)
	}
	for _, a := range known {
		if !slices.ContainsFunc(found, func(f fact) bool { return f.address == a }) &&
			len(found) < m.options.MaxRecipients {
			found = append(found, fact{address: a})
		}
	}
	if len(found) == 0 {
		if a := cmp.Or(m.returnedTo(), m.quotedTo(own)); a != "" {
			found = []fact{{address: a}}
		}
	}
	m.lendReason(found)
	return found
}

// lendReason gives recipients without a reason the reason that the notice gives for all.
func (m *mail) lendReason(found []fact) {
	known := slices.ContainsFunc(found, func(f fact) bool { return hasReason(f.diagnostic) })
	reason := m.reasonLines()
	for i := range found {
		if reason != "" && (found[i].diagnostic == "" || !known) {
			found[i].diagnostic = reason
		}
	}
}

// hasReason reports whether a text contains a reply or meaningful words.
func hasReason(text string) bool {
	if _, ok := findReply(text); ok {
		return true
	}
	_, ok := findWording(text)
	return ok
}

// reasonLines returns the first line of the notice with a refusal's code, else with meaningful words, and the
// rest of its paragraph.
func (m *mail) reasonLines() string {
	refuses := func(line string) bool { q, _ := findReply(line); return q.code >= 400 }
	for _, means := range []func(string) bool{refuses, hasReason} {
		for i, line := range m.notice.lines {
			if means(line) && !echo.MatchString(line) {
				return firstParagraph(strings.Join(m.notice.lines[i:], "\n"))
			}
		}
	}
	return ""
}

// quotedTo returns the one recipient in the header that a notice quotes, if nothing else names one.
func (m *mail) quotedTo(own []string) string {
	to := ""
	for _, line := range m.notice.lines {
		if !quotedField.MatchString(line) {
			continue
		}
		for _, a := range addresses(line, 3) {
			if isIn(own, a) || a == to {
				continue
			}
			if to != "" {
				return ""
			}
			to = a
		}
	}
	return to
}

var quotedField = regexp.MustCompile(`(?i)^\s*to\s*:`)

// writers returns the receiver and the author of the notice.
func (m *mail) writers() []string {
	var own []string
	for _, name := range []string{"to", "from", "return-path", "delivered-to"} {
		own = append(own, addresses(m.header.get(name), 5)...)
	}
	return own
}

// ownAddresses returns the addresses of the sender, who received the notice, and of its author. They are in
// the text too, and have not failed.
func (m *mail) ownAddresses() []string {
	own := m.writers()
	h := m.returnedHeader()
	for _, name := range []string{"from", "return-path", "sender", "errors-to"} {
		own = append(own, addresses(h.get(name), 2)...)
	}
	return own
}

// isIn reports whether own has an address. It ignores case, because return paths come back in another one.
func isIn(own []string, address string) bool {
	return slices.ContainsFunc(own, func(a string) bool { return strings.EqualFold(a, address) })
}

// returnedTo returns the one recipient of the returned message, if its header is unambiguous.
func (m *mail) returnedTo() string {
	h, own := m.returnedHeader(), m.ownAddresses()
	for _, name := range []string{"x-envelope-to", "to", "apparently-to", "delivered-to"} {
		if found := addresses(h.get(name), 2); len(found) == 1 && !isIn(own, found[0]) {
			return found[0]
		}
	}
	if found := receivedFor().FindStringSubmatch(h.get("received")); found != nil && !isIn(own, found[1]) {
		return found[1]
	}
	return ""
}

// receivedFor matches the recipient in a Received field (RFC 5321 section 4.4), which has only one.
var receivedFor = late(`\sfor <?` + address + `>?;`)

// collectFacts reads the lines: a line that names a recipient begins the text about it, up to the next such
// line.
func (m *mail) collectFacts(known, own []string, patterns ...pattern) []fact {
	var (
		out     []fact
		cur     = -1
		heard   []string // ">>> MAIL From: ..." and "<<< 550 ..." before the line that names the recipient
		byName  = map[string]int{}
		content []*strings.Builder // a Builder must not be copied, as the slice would when it grows
	)
	for _, line := range m.notice.lines {
		name, rest := nameIn(line, patterns)
		if name == "" || isIn(own, name) && !slices.Contains(known, name) || len(known) > 0 &&
			!slices.Contains(known, name) {
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "<<<") || strings.HasPrefix(text, ">>>") {
				heard = append(heard, strings.TrimPrefix(text, "<<<"))
			} else if talking.MatchString(text) {
				heard = nil
			}
			if cur >= 0 {
				content[cur].WriteString("\n" + line)
			}
			continue
		}
		at, again := byName[name]
		if !again {
			if len(out) == m.options.MaxRecipients {
				break
			}
			at = len(out)
			byName[name] = at
			out = append(out, fact{address: name})
			content = append(content, &strings.Builder{})
			if transcript().MatchString(line) {
				content[at].WriteString(strings.Join(heard, "\n") + "\n")
			}
		}
		heard = nil
		if transcript().MatchString(line) {
			rest = line
		}
		content[at].WriteString("\n" + rest)
		cur = at
	}
	for i := range out {
		out[i].diagnostic = strings.TrimSpace(content[i].String())
	}
	return out
}

// nameIn returns the address that a line is about, in normal form, and the text after it.
func nameIn(line string, patterns []pattern) (name, rest string) {
	if !strings.Contains(line, "@") || echo.MatchString(line) {
		return "", ""
	}
	for _, pattern := range patterns {
		if found := pattern().FindStringSubmatch(line); found != nil {
			if a := normal(found[1]); a != "" {
				return a, strings.TrimLeft(found[2], `>:,"' `)
			}
		}
	}
	return "", ""
}

// fillFromNotice gives the notice's text to a notification's recipients without a Diagnostic-Code.
func (m *mail) fillFromNotice(facts []fact) {
	for i, f := range facts {
		if _, err := strconv.Atoi(f.diagnostic); err == nil { // the exit code of a program
			facts[i].diagnostic = ""
		}
	}
	if !slices.ContainsFunc(facts, func(f fact) bool { return f.diagnostic == "" }) {
		return
	}
	said := m.collectFacts(nil, m.ownAddresses(), leading, transcript)
	for i, f := range facts {
		if f.diagnostic != "" {
			continue
		}
		for _, s := range said {
			if s.address == f.address || s.address == f.original {
				facts[i].diagnostic = s.diagnostic
			}
		}
		if len(facts) == 1 && !hasReason(facts[i].diagnostic) {
			facts[i].diagnostic = m.reasonLines()
		}
	}
}
