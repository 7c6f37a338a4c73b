package search

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/outbox/search/query"
)

// ValueFields are the fields that hold whole values.
func ValueFields() []query.Field {
	return []query.Field{query.To, query.From, query.Status, query.Lane, query.Account, query.Gateway, query.Tag,
		query.Code, query.ID}
}

// some removes empty values.
func some(values ...string) []string {
	kept := values[:0]
	for _, v := range values {
		if v != "" {
			kept = append(kept, v)
		}
	}
	return kept
}

// codes returns the error's name in capitals and the SMTP reply code.
func (d *Document) codes() []string {
	code := ""
	if d.SMTPCode > 0 {
		code = strconv.Itoa(d.SMTPCode)
	}
	return some(strings.ToUpper(d.Code), code)
}

// ids returns all ids of the message.
func (d *Document) ids() []string {
	return some(query.FoldID(d.QueueID), query.FoldID(d.MessageID), query.FoldID(d.Key))
}

// excerpt returns the beginning of a text, at most max bytes, cut between two words. It is valid UTF-8 with
// collapsed white space.
func excerpt(text string, max int) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		space := ""
		if b.Len() > 0 {
			space = " "
		}
		if b.Len()+len(space)+len(word) > max {
			break
		}
		b.WriteString(space + word)
	}
	if b.Len() == 0 && text != "" && max > 0 { // a single long word
		word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
		return strings.ToValidUTF8(word[:min(max, len(word))], "")
	}
	return b.String()
}
