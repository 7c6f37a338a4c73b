package smtpd

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/message"
)

// report is what a client asks for in delivery status notifications (RFC 3461). Postroom keeps one request
// for each message, SMTP has one for each recipient. A recipient with another request is deferred to another
// transaction (452), as RFC 5321 section 4.5.3.1.10 does with recipients beyond a limit. So every request is
// honoured exactly.
type report struct {
	full, headers bool
	id            string
	notify        []string // in lower case, sorted; nil if not given
	// the original recipient, if it differs from the recipient; empty if each recipient is its own
	original string
}

// otherReport puts a recipient off to a further transaction.
var otherReport = reply{code: 452, enhanced: "4.5.3",
	text: "A recipient with different NOTIFY or ORCPT needs its own transaction"}

func (r *report) mailParam(p param) reply {
	if p.name == "RET" {
		r.full, r.headers = strings.EqualFold(p.value, "FULL"), strings.EqualFold(p.value, "HDRS")
		if !r.full && !r.headers {
			return syntax("RET must be FULL or HDRS")
		}
		return reply{}
	}
	id, isXtext := xtext(p.value)
	if !isXtext || id == "" || len(id) > 100 {
		return syntax("ENVID must be 1 to 100 characters of xtext")
	}
	r.id = id
	return reply{}
}

// with returns the report of a message with a further recipient.
func (r report) with(params []param, to string, first bool) (report, reply) {
	var notify []string
	original := ""
	for _, p := range params {
		switch p.name {
		case "NOTIFY":
			if notify = parseNotify(p.value); notify == nil {
				return r, syntax("NOTIFY must be NEVER, or some of SUCCESS, FAILURE and DELAY")
			}
		case "ORCPT":
			address, valid := parseOriginal(p.value)
			if !valid {
				return r, syntax("ORCPT must be rfc822; or utf-8; and an encoded address")
			}
			if address != to {
				original = address
			}
		default:
			return r, unknownParam(p)
		}
	}
	switch {
	case first:
		r.notify, r.original = notify, original
	case !slices.Equal(r.notify, notify) || r.original != "" || original != "":
		return r, otherReport
	}
	return r, reply{}
}

// dsn returns the report as the API has it, or nil if nothing is asked for.
func (r report) dsn() *api.DSN {
	d := api.DSN{ID: r.id, Notify: r.notify, Recipient: r.original}
	switch {
	case r.full:
		d.Return = "full"
	case r.headers:
		d.Return = "headers"
	case r.id == "" && r.notify == nil && r.original == "":
		return nil
	}
	return &d
}

// parseNotify returns a list of conditions in lower case, or nil if value isn't one.
func parseNotify(value string) []string {
	list := strings.Split(strings.ToLower(value), ",")
	slices.Sort(list)
	if slices.Equal(list, []string{"never"}) {
		return list
	}
	for i, when := range list {
		if when != "success" && when != "failure" && when != "delay" || i > 0 && list[i-1] == when {
			return nil
		}
	}
	return list
}

// parseOriginal reads type and address of ORCPT. Only mail addresses can be passed on. They are returned in
// the normal form of recipients, so that they equal the recipient if they name the same mailbox.
func parseOriginal(value string) (address string, valid bool) {
	kind, encoded, _ := strings.Cut(value, ";")
	switch strings.ToLower(kind) {
	case "rfc822":
		address, valid = xtext(encoded)
	case "utf-8":
		address, valid = unitext(encoded)
	}
	if !valid {
		return "", false
	}
	address, err := message.NormalizeAddress(address)
	return address, err == nil
}

// unitext decodes RFC 6533 section 3: UTF-8 in which \x{2B} stands for a character.
func unitext(s string) (string, bool) {
	var b strings.Builder
	for {
		plain, rest, numbered := strings.Cut(s, `\x{`)
		b.WriteString(plain)
		if !numbered {
			return b.String(), true
		}
		number, rest, closed := strings.Cut(rest, "}")
		c, err := strconv.ParseUint(number, 16, 21)
		if !closed || err != nil || !utf8.ValidRune(rune(c)) {
			return "", false
		}
		b.WriteRune(rune(c))
		s = rest
	}
}

// xtext decodes RFC 3461 section 4: printable ASCII in which + and two hex digits stand for a character.
func xtext(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' {
			if i+2 >= len(s) || strings.Trim(s[i+1:i+3], "0123456789ABCDEF") != "" {
				return "", false
			}
			n, _ := strconv.ParseUint(s[i+1:i+3], 16, 8) // two hex digits
			c, i = byte(n), i+2
		} else if c <= ' ' || c > '~' || c == '=' {
			return "", false
		}
		if c < ' ' || c > '~' { // no honest envelope id or address has such characters
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
