package bounce

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/signedtoken"
)

// Read reads an email and returns its report. The error is the reader's; an email without meaning is None
// without an error. Content beyond the bounds of the options is dropped, and Report.Truncated is set.
func Read(r io.Reader, o Options) (Report, error) {
	o = o.withDefaults()
	raw, err := io.ReadAll(io.LimitReader(r, int64(o.MaxBytes)+1))
	if err != nil {
		return Report{}, fmt.Errorf("read mail that came back: %w", err)
	}
	truncated := len(raw) > o.MaxBytes
	if truncated {
		raw = raw[:o.MaxBytes]
	}
	root, cut := parseMail(raw)
	m := &mail{part: root, options: o, judge: newJudge(o.Now)}
	m.collect()
	report := m.read()
	report.Truncated = report.Truncated || truncated || cut
	if report.Kind == None {
		return Report{Kind: None, Truncated: report.Truncated}, nil
	}
	report.Original = m.original(report)
	report.ReturnPath = m.returnPath(report)
	return report, nil
}

// mail is the mail being read, with the data that several readers of it need.
type mail struct {
	*part
	judge
	options  Options
	status   []*part // message/delivery-status and similar
	feedback *part   // message/feedback-report
	returned *part   // the message it is about, or its header
	texts    []*part // the readable text
	notice   notice  // the same, as lines
}

// collect finds the relevant parts. Text after the returned message is not part of the notice: filters append
// advertisements.
func (m *mail) collect() {
	m.walk(func(p *part) {
		switch {
		case strings.HasPrefix(p.media, "multipart/"):
		case p.media == "message/delivery-status", p.media == "message/global-delivery-status":
			m.status = append(m.status, p)
		case p.media == "message/feedback-report":
			m.feedback = cmp.Or(m.feedback, p)
		case p.media == "message/rfc822", p.media == "message/global", p.media == "text/rfc822-headers",
			p.media == "message/global-headers",
			p.media == "text/rfc822-header", p.media == "message/rfc822-headers", p.media == "message/partial":
			m.returned = cmp.Or(m.returned, p)
		case strings.HasPrefix(p.media, "text/") && m.returned == nil &&
			p.header.get("content-disposition") != "attachment":
			m.texts = append(m.texts, p)
		}
	})
	m.notice = newNotice(m.texts)
}

// read tries the forms from the most certain to the vaguest.
func (m *mail) read() Report {
	for _, reader := range []func() (Report, bool){m.readFeedback, m.readStatus, m.readSES, m.readStatusText,
		m.readWrapped, m.readAutomatic, m.readNotice} {
		if report, ok := reader(); ok {
			return report
		}
	}
	return Report{Kind: None}
}

// readWrapped reads a notification that a gateway wrapped in its own notice, which names no one. It doesn't
// read mail that a person forwards.
func (m *mail) readWrapped() (Report, bool) {
	if m.returned == nil || m.returned.media != "message/rfc822" || !m.fromDaemon() ||
		len(m.collectFacts(nil, m.writers(), leading, labelled, anywhere)) > 0 {
		return Report{}, false
	}
	root, _ := parseMail(m.returned.content())
	inner := &mail{part: root, options: m.options, judge: m.judge}
	inner.collect()
	r, ok := inner.readStatus()
	if !ok || !inner.fromDaemon() {
		return Report{}, false
	}
	m.returned, m.notice.returned = inner.returned, inner.notice.returned
	return r, true
}

// original returns the message that the mail is about.
func (m *mail) original(report Report) Original {
	h := m.returnedHeader()
	out := report.Original
	out.MessageID = cmp.Or(out.MessageID, messageID(h.get("message-id")))
	for _, name := range []string{"x-original-message-id", "in-reply-to"} {
		out.MessageID = cmp.Or(out.MessageID, messageID(m.header.get(name)))
	}
	if len(out.To) == 0 {
		out.To = addresses(h.get("to"), 20)
	}
	return out
}

// returnedHeader returns the returned message's header, from its part or from the text of the notice.
func (m *mail) returnedHeader() header {
	if m.returned == nil {
		return m.notice.returned
	}
	h, _ := splitHeader(m.returned.content())
	return h
}

var bracketed = late(`<([^<>\s]{1,250})>`)

// messageID returns the id in the value of a header such as Message-ID.
func messageID(value string) string {
	if m := bracketed().FindStringSubmatch(value); m != nil {
		return message.OneLine(m[1], 250)
	}
	if value = strings.TrimSpace(value); strings.Contains(value, "@") && !strings.ContainsAny(value, " <>") &&
		len(value) <= 250 {
		return message.OneLine(value, 250)
	}
	return ""
}

// returnPath returns a return path of ours: the recipient of this email, or the envelope sender of the
// message returned in it.
func (m *mail) returnPath(report Report) string {
	candidates := []string{m.options.EnvelopeTo}
	for _, name := range []string{"delivered-to", "x-original-to", "envelope-to", "to"} {
		values := m.header.all(name)
		candidates = append(candidates, values[:min(len(values), 5)]...)
	}
	h := m.returnedHeader()
	candidates = append(candidates, h.get("return-path"), h.get("x-envelope-from"))
	if report.Feedback != nil {
		candidates = append(candidates, report.Feedback.MailFrom)
	}
	for _, candidate := range candidates {
		for _, a := range addresses(candidate, 5) {
			if n := len(signedtoken.Prefix); len(a) > n && strings.EqualFold(a[:n], signedtoken.Prefix) {
				return a
			}
		}
	}
	return ""
}

// maxAddressText bounds the text that is searched for addresses. No header field has more.
const maxAddressText = 64 << 10

var addressPattern = late(
	`[^\s<>()\[\],;:"'|=：；，、。（）＜＞「」【】]{1,64}@(?:[\pL\pN](?:[\pL\pN-]*[\pL\pN])?\.)+[\pL\pN][\pL\pN-]*[\pL\pN]`)

// addresses returns the addresses in a text, in normal form, each once, at most max of them.
func addresses(s string, max int) []string {
	var out []string
	seen := map[string]bool{}
	s = s[:min(len(s), maxAddressText)]
	for _, found := range addressPattern().FindAllString(s, 4*max) {
		if a := normal(strings.Trim(found, ".")); a != "" && !seen[a] {
			seen[a] = true
			if out = append(out, a); len(out) == max {
				break
			}
		}
	}
	return out
}

// normal returns an address in normal form, or "" if it isn't valid. Japan's mobile networks gave out
// addresses with two dots in a row, or a dot before the @.
func normal(s string) string {
	if a, err := message.NormalizeAddress(s); err == nil {
		return a
	}
	local, domain, _ := strings.Cut(s, "@")
	mended := strings.Join(strings.FieldsFunc(local, func(r rune) bool { return r == '.' }), ".")
	a, err := message.NormalizeAddress(mended + "@" + domain)
	if err != nil || mended == local {
		return ""
	}
	return local + strings.TrimPrefix(a, mended)
}
