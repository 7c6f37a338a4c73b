package provider

import (
	"regexp"
	"strconv"
	"strings"
)

var (
	replyCode    = regexp.MustCompile(`(?:^|[^0-9A-Za-z.])([245][0-9]{2})(?:[ \-]|$)`)
	enhancedCode = regexp.MustCompile(
		`(?:^|[^0-9A-Za-z.])([245]\.[0-9]{1,3}\.[0-9]{1,3})(?:[^0-9.]|\.[^0-9]|\.?$)`)
	wholeCode = regexp.MustCompile(`^[245]\.[0-9]{1,3}\.[0-9]{1,3}$`)
)

// fillCodes takes a missing reply code and enhanced code from the diagnostic. It searches only the beginning:
// later numbers are ids and counts. If the two codes contradict each other, it drops the enhanced code.
func (e *Event) fillCodes() {
	head := e.Diagnostic[:min(len(e.Diagnostic), 80)]
	if e.SMTPCode < 200 || e.SMTPCode > 599 || e.SMTPCode/100 == 3 {
		e.SMTPCode = 0
		if m := replyCode.FindStringSubmatch(head); m != nil {
			e.SMTPCode, _ = strconv.Atoi(m[1])
		}
	}
	if !wholeCode.MatchString(e.Enhanced) {
		e.Enhanced = ""
		if m := enhancedCode.FindStringSubmatch(head); m != nil {
			e.Enhanced = m[1]
		}
	}
	if e.SMTPCode != 0 && e.Enhanced != "" && int(e.Enhanced[0]-'0') != e.SMTPCode/100 {
		e.Enhanced = ""
	}
}

// code returns a number, or 0 for other text.
func code(v any) int {
	n, err := strconv.Atoi(strings.TrimSpace(asText(v)))
	if err != nil {
		return 0
	}
	return n
}
