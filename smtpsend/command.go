package smtpsend

import (
	"fmt"
	"strconv"
	"strings"
)

// mailCommand is MAIL with the parameters the message needs and the relay knows.
func (t *transaction) mailCommand() string {
	var b strings.Builder
	ext, m := &t.c.ext, &t.d.m
	b.WriteString("MAIL FROM:<" + m.From + ">")
	if ext.size {
		b.WriteString(" SIZE=" + strconv.Itoa(len(t.d.body)+2))
	}
	if m.EightBit || t.d.utf8 && ext.eightBit {
		b.WriteString(" BODY=8BITMIME")
	}
	if t.d.utf8 {
		b.WriteString(" SMTPUTF8")
	}
	if ext.dsn && m.DSN.Return != "" {
		b.WriteString(" RET=" + m.DSN.Return)
	}
	if ext.dsn && m.DSN.Envelope != "" {
		b.WriteString(" ENVID=" + xtext(m.DSN.Envelope))
	}
	return b.String()
}

// notify is RCPT's parameter that asks for delivery reports.
func (t *transaction) notify() string {
	if !t.c.ext.dsn || t.d.m.DSN.Notify == "" {
		return ""
	}
	return " NOTIFY=" + t.d.m.DSN.Notify
}

// xtext escapes a parameter value (RFC 3461 section 4).
func xtext(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '+' || c == '=' {
			fmt.Fprintf(&b, "+%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
