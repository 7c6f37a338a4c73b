package bounce

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/smtpsend"
)

// fact is the statement of an email about one recipient, before it is judged.
type fact struct {
	address, original string
	action            Action
	status            string
	diagnostic        string
	remote            string

	code  int            // the reply's code, if it has a separate field; 0 if the diagnostic quotes it
	phase smtpsend.Phase // phase of the reply, if the diagnostic does not tell; empty if unknown
}

// readStatus reads a delivery status notification (RFC 3464).
func (m *mail) readStatus() (Report, bool) {
	var r Report
	var facts []fact
	for _, p := range m.status {
		facts = append(facts, m.readFields(p.content(), &r)...)
	}
	if len(facts) == 0 {
		return Report{}, false
	}
	m.mendAddresses(facts)
	m.fillFromNotice(facts)
	r.Form = "dsn"
	return m.conclude(r, facts)
}

var finalRecipient = regexp.MustCompile(`(?im)^(?:final|original)-recipient\s*:`)

// readStatusText reads the same fields in the text, as Amazon WorkMail and some filters write them.
func (m *mail) readStatusText() (Report, bool) {
	for _, p := range m.texts {
		text := p.text()
		at := finalRecipient.FindStringIndex(text)
		if at == nil || !strings.Contains(strings.ToLower(text), "action:") &&
			!strings.Contains(strings.ToLower(text), "status:") {
			continue
		}
		if m.daemonSigns() == 0 {
			continue // an email that quotes a bounce
		}
		var r Report
		facts := m.readFields([]byte(text), &r)
		if len(facts) > 0 {
			m.mendAddresses(facts)
			m.fillFromNotice(facts)
			r.Form = "dsn-text"
			return m.conclude(r, facts)
		}
	}
	return Report{}, false
}

// emptyLine matches a line of white space only, which separates groups and paragraphs too.
var emptyLine = regexp.MustCompile(`(?m)^[ \t]+$`)

// readFields reads groups of fields: one about the message, then one per recipient. Blank lines separate them
// (RFC 3464 section 2.1). If these are missing, another Final-Recipient begins the next group.
func (m *mail) readFields(content []byte, r *Report) []fact {
	var (
		facts []fact
		cur   *fact
	)
	content = emptyLine.ReplaceAll(content, nil)
	for len(content) > 0 {
		content = bytes.TrimLeft(content, "\n\r")
		var group header
		group, content = splitGroup(content)
		for _, f := range group {
			switch f.name {
			case "final-recipient", "original-recipient", "action", "status", "diagnostic-code":
				again := cur != nil && (f.name == "final-recipient" && cur.address != "" ||
					f.name == "original-recipient" && cur.original != "")
				if cur == nil || again {
					if len(facts) == m.options.MaxRecipients {
						r.Truncated = true
						return keepNamed(facts)
					}
					facts = append(facts, fact{})
					cur = &facts[len(facts)-1]
				}
			}
			m.readField(f, r, cur)
		}
		if cur != nil && (cur.address != "" || cur.original != "") {
			cur = nil
		}
	}
	return keepNamed(facts)
}

// splitGroup reads fields up to the next empty line, and skips lines that are not fields.
func splitGroup(content []byte) (header, []byte) {
	end := bytes.Index(content, []byte("\n\n"))
	group, rest := content, []byte(nil)
	if end >= 0 {
		group, rest = content[:end], content[end+2:]
	}
	for len(group) > 0 {
		h, _ := splitHeader(group)
		if h != nil {
			return h, rest
		}
		_, group, _ = bytes.Cut(group, []byte("\n"))
	}
	return nil, rest
}

func (m *mail) readField(f field, r *Report, cur *fact) {
	switch f.name {
	case "reporting-mta":
		r.ReportingMTA = typed(f.value)
	case "original-envelope-id":
		r.Original.EnvelopeID = message.OneLine(f.value, 100)
	case "x-original-message-id":
		r.Original.MessageID = messageID(f.value)
	}
	if cur == nil {
		return
	}
	switch f.name {
	case "final-recipient":
		cur.address = recipientAddress(f.value)
	case "original-recipient":
		cur.original = recipientAddress(f.value)
	case "x-actual-recipient":
		if !strings.Contains(cur.address, "@") && strings.Contains(f.value, "@") {
			cur.address = recipientAddress(f.value)
		}
	case "action":
		word, _, _ := strings.Cut(strings.TrimSpace(f.value), " ")
		cur.action = actions[strings.ToLower(strings.Trim(word, ";,()"))]
	case "status":
		cur.status = statusPattern.FindString(f.value)
		if cur.diagnostic == "" { // "Status: 5.1.1 (User unknown)"
			if _, comment, ok := strings.Cut(f.value, "("); ok && hasReason(comment) {
				cur.diagnostic = strings.TrimSuffix(comment, ")")
			}
		}
	case "diagnostic-code", "x-supplementary-info", "x-notes-diagnostic", "smtp-remote-reason":
		if text := typedText(f.value); f.name == "diagnostic-code" || cur.diagnostic == "" {
			cur.diagnostic = text
		}
	case "remote-mta":
		cur.remote = typed(f.value)
	}
}

var statusPattern = regexp.MustCompile(`[245]\.\d{1,3}\.\d{1,3}`)

var actions = map[string]Action{
	"failed": ActionFailed, "failure": ActionFailed, "fail": ActionFailed, "error": ActionFailed,
	"expired": ActionFailed,
	"delayed": ActionDelayed, "delay": ActionDelayed, "deferred": ActionDelayed,
	"delivered": ActionDelivered, "delivery": ActionDelivered, "deliverable": ActionDelivered,
	"relayed": ActionRelayed, "expanded": ActionExpanded,
}

// keepNamed drops groups that name no recipient, or have no statement: messages have fields of such names
// too.
func keepNamed(facts []fact) []fact {
	out := facts[:0]
	for _, f := range facts {
		if (f.address != "" || f.original != "") && (f.action != "" || f.status != "" || f.diagnostic != "") {
			out = append(out, f)
		}
	}
	return out
}

var typePrefix = regexp.MustCompile(`^\s*[A-Za-z][\w-]*\s*;\s*`)

// typed returns the value of a field such as "dns; mx.example.com".
func typed(value string) string {
	return message.OneLine(strings.Trim(typePrefix.ReplaceAllString(value, ""), " ()<>"), 255)
}

// typedText returns the value of Diagnostic-Code: "smtp; 550 5.1.1 user unknown".
func typedText(value string) string {
	return typePrefix.ReplaceAllString(words(value), "")
}

var unitext = regexp.MustCompile(`\\x\{([0-9A-Fa-f]{1,6})\}`)

// mendAddresses finds the address of a recipient whose Final-Recipient is not one: servers put a local user
// or a bare domain there.
func (m *mail) mendAddresses(facts []fact) {
	for i, f := range facts {
		switch local, domain, _ := strings.Cut(f.address, "@"); {
		case local != "" && strings.Contains(domain, "."):
		case local != "" && domain != "" && !strings.Contains(f.original, "@"):
		case strings.Contains(f.original, "@"):
			facts[i].address = f.original
		case len(facts) == 1:
			if said := m.collectFacts(nil, m.ownAddresses(), leading, transcript); len(said) == 1 {
				facts[i].address = said[0].address
			} else if to := m.returnedTo(); to != "" {
				facts[i].address = to
			}
		}
	}
}

// sourceRoute matches "@a.example,@b.example:" before an address, which RFC 5321 appendix C says to ignore.
var sourceRoute = regexp.MustCompile(`^(<?)@[^:]*:`)

// recipientAddress parses "rfc822; ann@example.com", and "utf-8; ..." with its escapes (RFC 6533 section 3).
func recipientAddress(value string) string {
	value = toUTF8([]byte(typePrefix.ReplaceAllString(value, "")), "")
	value = unitext.ReplaceAllStringFunc(value, func(s string) string {
		n, err := strconv.ParseUint(s[3:len(s)-1], 16, 32)
		if err != nil || n > 0x10ffff || n < 0x20 {
			return "?"
		}
		return string(rune(n))
	})
	value = sourceRoute.ReplaceAllString(message.OneLine(value, 320), "$1")
	if found := addresses(value, 1); len(found) > 0 {
		return found[0]
	}
	value = strings.Trim(value, " <>\"'")
	if normal, err := message.NormalizeAddress(value); err == nil {
		return normal
	}
	return value
}
