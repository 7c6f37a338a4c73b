package query

import (
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/internal/schedule"
)

// statuses are the values of status:, as in the email log. A message may have two, as sent and bounced.
var statuses = []string{"queued", "sending", "sent", "failed", "cancelled", "suppressed", "dead", "bounced",
	"complained", "unsubscribed"}

// lanes are the values of lane:.
var lanes = []string{"transactional", "bulk"}

// fields are the parsers of the language's fields.
var fields = map[string]func(*parser, value) (Node, error){
	"subject": inWords(Subject),
	"text":    inWords(Text),
	"to":      inAddress(To),
	"from":    inAddress(From),
	"status":  oneOf(Status, statuses),
	"lane":    oneOf(Lane, lanes),
	"account": whole(Account, asWritten),
	"gateway": whole(Gateway, asWritten),
	"tag":     whole(Tag, asWritten),
	"code":    whole(Code, strings.ToUpper),
	"id":      whole(ID, FoldID),
	"before": func(p *parser, v value) (Node, error) {
		at, err := p.moment(v)
		return Created{Until: at}, err
	},
	"after": func(p *parser, v value) (Node, error) {
		at, err := p.moment(v)
		return Created{From: at}, err
	},
}

func asWritten(text string) string { return text }

// addressForms returns the forms in which an address, its local part or its domain may be indexed. It removes
// what people paste around an address.
func addressForms(text string) []string {
	text = strings.Trim(text, " <>,;.")
	if len(text) > 7 && strings.EqualFold(text[:7], "mailto:") {
		text = text[7:]
	}
	text = strings.TrimPrefix(strings.Trim(text, "<>"), "@")
	forms := []string{Fold(text)}
	if ascii := Fold(message.ASCIIDomain(text)); strings.Contains(ascii, ".") && ascii != forms[0] {
		forms = append(forms, ascii)
	}
	return forms
}

// inAddress searches for an address, its local part or its domain.
func inAddress(field Field) func(*parser, value) (Node, error) {
	return func(p *parser, v value) (Node, error) {
		var found Or
		for _, form := range addressForms(v.text) {
			n, err := whole(field, asWritten)(p, value{text: form, prefix: v.prefix})
			if err != nil {
				return nil, err
			}
			found = append(found, n)
		}
		if len(found) == 1 {
			return found[0], nil
		}
		return found, nil
	}
}

// inWords searches for words of a field.
func inWords(field Field) func(*parser, value) (Node, error) {
	return func(p *parser, v value) (Node, error) {
		words := Texts(v.text)
		switch {
		case len(words) == 0:
			return nil, p.wrong(v.at, "there is no letter or digit to search for")
		case v.prefix:
			return beginningIn(field, words), nil
		}
		return phrase(field, words), nil
	}
}

// whole searches for a whole value.
func whole(field Field, as func(string) string) func(*parser, value) (Node, error) {
	return func(_ *parser, v value) (Node, error) {
		if v.prefix {
			return Prefix{field, as(v.text)}, nil
		}
		return Term{field, as(v.text)}, nil
	}
}

// oneOf searches for one of a few values.
func oneOf(field Field, values []string) func(*parser, value) (Node, error) {
	return func(p *parser, v value) (Node, error) {
		text := strings.ToLower(v.text)
		if v.prefix || !slices.Contains(values, text) {
			return nil, p.wrong(v.at, "%s is one of %s", field, strings.Join(values, ", "))
		}
		return Term{field, text}, nil
	}
}

// moments are the formats of times; the default zone is UTC.
var moments = []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateTime,
	"2006-01-02 15:04", time.RFC3339Nano, "2006-01-02T15:04Z07:00"}

// moment parses a date, a date with a time, or a duration before now. Indexes store whole seconds.
func (p *parser) moment(v value) (time.Time, error) {
	if !v.prefix {
		for _, layout := range moments {
			if at, err := time.Parse(layout, strings.ToUpper(v.text)); err == nil {
				return at.UTC().Truncate(time.Second), nil
			}
		}
		if ago, err := schedule.ParseDuration(v.text); err == nil && ago >= 0 && ago <= longAgo {
			return p.now.Add(-ago).UTC().Truncate(time.Second), nil
		}
	}
	return time.Time{}, p.wrong(v.at,
		"a time is a date such as 2030-01-31, a time such as 2030-01-31T15:04, or an age such as 7d, 24h "+
			"or 30m")
}

// longAgo is the maximum of relative times: a hundred years.
const longAgo = 100 * 365 * 24 * time.Hour
