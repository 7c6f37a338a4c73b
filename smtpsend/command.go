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
		b.WriteString(" SIZE=" + strconv.FormatInt(t.d.size, 10))
	}
	if m.EightBit || t.d.utf8 && ext.eightBit {
		b.WriteString(" BODY=8BITMIME")
	}
	if t.d.utf8 {
		b.WriteString(" SMTPUTF8")
	}
	if m.RequireTLS {
		b.WriteString(" REQUIRETLS")
	}
	if ext.dsn && m.DSN.Return != "" {
		b.WriteString(" RET=" + m.DSN.Return)
	}
	if ext.dsn && m.DSN.Envelope != "" {
		b.WriteString(" ENVID=" + xtext(m.DSN.Envelope))
	}
	return b.String()
}

// reports is what RCPT asks for in the way of delivery reports, for the recipient at path.
func (t *transaction) reports(path string) string {
	dsn := t.d.m.DSN
	if !t.c.ext.dsn || dsn == (DSN{}) {
		return ""
	}
	if dsn.Original != "" {
		path = dsn.Original
	}
	original := " ORCPT=rfc822;" + xtext(path)
	if !ascii(path) {
		original = " ORCPT=utf-8;" + unitext(path)
	}
	if dsn.Notify == "" {
		return original
	}
	return " NOTIFY=" + dsn.Notify + original
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

// unitext escapes an internationalised address for a relay that takes UTF-8 in commands (RFC 6533 section 3).
func unitext(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c <= ' ' || c == 0x7f || c == '+' || c == '=' || c == '\\' {
			fmt.Fprintf(&b, `\x{%02X}`, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
