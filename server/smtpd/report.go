package smtpd

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/message"
)

// report is what a client asks about delivery status notifications (RFC 3461). Postroom keeps one such wish for a message, while SMTP has
// one for each recipient: recipients with another wish are sent to a further transaction (452), as RFC 5321 section 4.5.3.1.10 lets
// recipients beyond a limit be. So every wish is followed to the letter.
type report struct {
	full, headers bool
	id            string
	notify        []string // in lower case, sorted; nil: not said
	original      string   // the original recipient, of a message to one who was not that; empty: each recipient is its own
}

// otherWish sends a recipient to a further transaction.
var otherWish = reply{code: 452, enhanced: "4.5.3", text: "A recipient with other NOTIFY or ORCPT needs a transaction of its own; send to it in a further one"}

func (r *report) mailParam(p param) (refused reply, fine bool) {
	if p.name == "RET" {
		r.full, r.headers = strings.EqualFold(p.value, "FULL"), strings.EqualFold(p.value, "HDRS")
		return syntax("RET must be FULL or HDRS"), r.full || r.headers
	}
	id, isXtext := xtext(p.value)
	r.id = id
	return syntax("ENVID must be 1 to 100 characters of xtext"), isXtext && id != "" && len(id) <= 100
}

// with is the report of a message with a further recipient.
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
		return r, otherWish
	}
	return r, reply{}
}

// dsn is the report in the words of the API; nil: nothing is asked for.
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

// parseNotify reads a list of conditions; nil: it is none.
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

// parseOriginal reads type and address of ORCPT. Only addresses of mail can be passed on; they come back in the form of a recipient, so that
// they equal it where they name the same mailbox.
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

// unitext decodes RFC 6533 section 3: UTF-8 in which a character may be written as its number, \x{2B}.
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

// xtext decodes RFC 3461 section 4: printable ASCII, with + and two hex digits for what is not to be written as it is.
func xtext(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' {
			if i+2 >= len(s) {
				return "", false
			}
			high, low := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
			if high < 0 || low < 0 {
				return "", false
			}
			c, i = byte(high<<4|low), i+2
		} else if c <= ' ' || c > '~' || c == '=' {
			return "", false
		}
		if c < ' ' || c > '~' { // an envelope id or an address with such characters would be somebody's trick
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), true
}

const hexDigits = "0123456789ABCDEF"
