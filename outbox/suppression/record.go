package suppression

import (
	"fmt"
	"strings"
	"time"
)

// The value of a field has these parts for each reason: its letter; its creation and expiry (nothing means
// never), as eight hexadecimal digits of Unix seconds each; "+" if it has evidence, otherwise ","; the
// source. The reasons are separated by ";", as in
//
//	u6920f0a0,unsubscribe;h6920f0a06922f0a0+smtp

// clock returns a time as scripts compare it: as text. It ends in 2106.
func clock(at time.Time) string { return fmt.Sprintf("%08x", uint32(max(1, min(at.Unix(), 1<<32-1)))) }

// end is clock for an expiry.
func end(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return clock(at)
}

// record is one reason of a field.
type record struct {
	reason   Reason
	created  uint32
	expires  uint32 // 0 means never
	evidence bool
	source   string
}

// inForce reports whether the record holds at a time.
func (r record) inForce(now int64) bool { return r.expires == 0 || int64(r.expires) > now }

// records parses a field. Parts that are not records are skipped.
func records(value string) []record {
	list := make([]record, 0, 1)
	for text := range strings.SplitSeq(value, ";") {
		if r, ok := parseRecord(text); ok {
			list = append(list, r)
		}
	}
	return list
}

func parseRecord(text string) (r record, ok bool) {
	sign := strings.IndexAny(text, ",+")
	if sign != 9 && sign != 17 {
		return r, false
	}
	r = record{reason: reasonOf(text[0]), created: parseHex(text[1:9]), evidence: text[sign] == '+',
		source: text[sign+1:]}
	if sign == 17 {
		r.expires = parseHex(text[9:17])
	}
	return r, r.reason != ""
}

func parseHex(s string) uint32 {
	var n uint32
	for _, c := range []byte(s) {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint32(c-'a'+10)
		}
	}
	return n
}

// entry returns the entry of a record.
func (r record) entry(scope, subject string) Entry {
	e := Entry{Reason: r.reason, Source: r.source, Created: time.Unix(int64(r.created), 0).UTC()}
	e.Account, e.List = parseScope(scope)
	if domain, ok := strings.CutPrefix(subject, "@"); ok {
		e.Domain = domain
	} else {
		e.Address = subject
	}
	if r.expires != 0 {
		e.Expires = time.Unix(int64(r.expires), 0).UTC()
	}
	return e
}

// evidence packs an entry's evidence, a line for each: the message, the reply, and the client's IP address
// and user agent. Empty lines at the end are left out. It is empty without evidence.
func (e *Entry) evidence() string {
	text := strings.Join([]string{e.MessageID, e.Response, e.RemoteAddress, e.UserAgent}, "\n")
	return strings.TrimRight(text, "\n")
}

// setEvidence is the inverse of evidence.
func (e *Entry) setEvidence(text string) {
	into := []*string{&e.MessageID, &e.Response, &e.RemoteAddress, &e.UserAgent}
	for i, line := range strings.SplitN(text, "\n", len(into)) {
		*into[i] = line
	}
}
