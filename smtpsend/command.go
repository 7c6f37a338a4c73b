package smtpsend

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// mailCommand is MAIL with the parameters that the message needs and the relay offers.
func (t *transaction) mailCommand() string {
	ext, m := &t.c.ext, &t.d.m
	command := "MAIL FROM:<" + t.d.reversePath(t.to[0]) + ">"
	if ext.size {
		command += " SIZE=" + strconv.FormatInt(t.d.size, 10)
	}
	if m.EightBit || t.d.utf8 && ext.eightBit {
		command += " BODY=8BITMIME"
	}
	if t.d.utf8 {
		command += " SMTPUTF8"
	}
	if m.RequireTLS {
		command += " REQUIRETLS"
	}
	if ext.dsn && m.DSN.Return != "" {
		command += " RET=" + m.DSN.Return
	}
	if ext.dsn && m.DSN.Envelope != "" {
		command += " ENVID=" + xtext(m.DSN.Envelope)
	}
	return command
}

// reports returns the parameters of RCPT that ask for delivery reports (RFC 3461), for the recipient at path.
func (t *transaction) reports(path string) string {
	dsn := t.d.m.DSN
	if !t.c.ext.dsn || dsn == (DSN{}) {
		return ""
	}
	path = cmp.Or(dsn.Original, path)
	original := " ORCPT=rfc822;" + xtext(path)
	if !ascii(path) {
		original = " ORCPT=utf-8;" + escape(path, `+=\`, `\x{%02X}`) // RFC 6533 section 3
	}
	if dsn.Notify == "" {
		return original
	}
	return " NOTIFY=" + dsn.Notify + original
}

// xtext escapes the ASCII value of a parameter (RFC 3461 section 4).
func xtext(s string) string { return escape(s, "+=", "+%02X") }

// escape writes control characters, spaces and special characters by format.
func escape(s, special, format string) string {
	var b strings.Builder
	for _, c := range s {
		if c <= ' ' || c == 0x7f || strings.ContainsRune(special, c) {
			fmt.Fprintf(&b, format, c)
		} else {
			b.WriteRune(c)
		}
	}
	return b.String()
}
