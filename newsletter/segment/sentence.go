package segment

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Sentence returns the rule as text, such as "plan is “pro”, and not (tag “beta”)".
func (r Rule) Sentence() string {
	if r.root == nil {
		return "everybody"
	}
	return r.root.words(false)
}

// words returns a part as text; in brackets, if it joins several and is inside of another.
func (n *node) words(inside bool) string {
	switch n.join {
	case "":
		return n.term.words()
	case "not":
		return "not (" + n.parts[0].words(false) + ")"
	}
	parts := make([]string, len(n.parts))
	for i, part := range n.parts {
		parts[i] = part.words(true)
	}
	text := strings.Join(parts, ", "+n.join+" ")
	if inside && len(parts) > 1 {
		return "(" + text + ")"
	}
	return text
}

func (t *term) words() string {
	switch t.kind {
	case "attribute":
		return t.attributeWords()
	case "tag":
		return "tag " + quoted(t.name)
	case "list":
		if t.op == "" {
			return "on list " + t.name
		}
		return t.op + " on list " + t.name
	case "consent":
		return "agreed to list " + t.name + " " + t.boundWords()
	case "campaign":
		return strings.Replace(t.op, "clicked", "clicked in", 1) + " campaign " + t.name
	case "locale":
		return "language " + t.name
	case "domain":
		return "address at " + strings.TrimPrefix(t.name, "@")
	}
	return "came " + t.boundWords()
}

func (t *term) attributeWords() string {
	switch t.op {
	case "exists":
		if t.value == false {
			return "has no " + t.name
		}
		return "has " + t.name
	case "before", "after":
		return t.name + " is " + t.boundWords()
	}
	return t.name + " " + operators[t.op] + " " + valueWords(t.value)
}

// boundWords returns "before 2030-12-31", "more than 30 days ago", or "in the last 30 days".
func (t *term) boundWords() string {
	if !t.at.IsZero() {
		form := time.RFC3339
		if t.at.Equal(t.at.Truncate(24 * time.Hour)) {
			form = time.DateOnly
		}
		return strings.Replace(t.op, "after", "on or after", 1) + " " + t.at.Format(form)
	}
	span := fmt.Sprintf("%d hours", int(t.before.Hours()))
	if t.before.Hours() >= 24 && t.before%(24*time.Hour) == 0 {
		span = fmt.Sprintf("%d days", int(t.before.Hours())/24)
	}
	if t.op == "before" {
		return "more than " + span + " ago"
	}
	return "in the last " + span
}

func valueWords(value any) string {
	switch v := value.(type) {
	case string:
		return quoted(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, one := range v {
			parts[i] = valueWords(one)
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(value)
}

func quoted(text string) string { return "“" + text + "”" }

// Held is a term with its result for a subscriber.
type Held struct {
	Text  string // the term as text
	Value string // the subscriber's value, or empty
	Holds bool
}

// Explain returns each term of a rule with its result for a subscriber.
func (r Rule) Explain(s *Subscriber, now time.Time) []Held {
	held := make([]Held, len(r.terms))
	for i, t := range r.terms {
		held[i] = Held{Text: t.words(), Value: t.found(s), Holds: t.holds(s, now)}
	}
	return held
}

// found returns what a subscriber has of what a term asks for.
func (t *term) found(s *Subscriber) string {
	switch t.kind {
	case "attribute":
		if has := s.attribute(t.name); has != nil {
			return valueWords(has)
		}
	case "tag":
		return strings.Join(s.Tags, ", ")
	case "list":
		return s.Lists[strings.ToLower(t.name)].State
	case "consent":
		if on, ok := s.Lists[strings.ToLower(t.name)]; ok {
			return on.Given.UTC().Format(time.RFC3339)
		}
	case "campaign":
		return s.Campaigns[t.name].words(s.Place)
	case "locale":
		return s.Locale
	case "domain":
		return s.Email[strings.LastIndexByte(s.Email, '@')+1:]
	case "created":
		return s.Created.UTC().Format(time.RFC3339)
	}
	return ""
}

// words returns all that the subscriber at a place did.
func (e Engaged) words(place int) string {
	var did []string
	for _, what := range [...]string{"got", "opened", "clicked"} {
		if e.did(what, place) {
			did = append(did, what)
		}
	}
	return strings.Join(did, ", ")
}

// The types of attributes.
const (
	Text   = "text"
	Number = "number"
	Bool   = "bool"
	List   = "list"
)

// Need is an attribute that a rule asks for, with the types that its term compares with. No types: any.
type Need struct {
	Name  string
	Types []string
}

// Attributes returns the attributes that a rule asks for.
func (r Rule) Attributes() []Need {
	var needs []Need
	for _, t := range r.terms {
		if t.kind == "attribute" {
			needs = append(needs, Need{Name: t.name, Types: t.types()})
		}
	}
	return needs
}

// types returns the types of attributes that a term can hold for.
func (t *term) types() []string {
	switch t.op {
	case "gt", "gte", "lt", "lte":
		return []string{Number}
	case "startsWith", "before", "after":
		return []string{Text}
	case "contains":
		return []string{Text, List}
	case "is":
		switch t.value.(type) {
		case float64:
			return []string{Number}
		case bool:
			return []string{Bool}
		}
		return []string{Text, List}
	}
	return nil
}

// TypeOf returns the type of an attribute's value, as JSON is read, or "" if it isn't valid.
func TypeOf(value any) string {
	switch value.(type) {
	case string:
		return Text
	case float64:
		return Number
	case bool:
		return Bool
	case []any:
		return List
	}
	return ""
}
