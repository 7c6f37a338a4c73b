package segment

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/message"
)

// Subscriber is the subject of a rule.
type Subscriber struct {
	Email      string
	Locale     string // empty if not known
	Created    time.Time
	Attributes []byte // a JSON object; empty if none
	Tags       []string
	Lists      map[string]Subscription // by id

	// Campaigns has the campaigns that the rule names, by id. An absent one was sent to no one.
	Campaigns map[string]Engaged
	Place     int // the subscriber's in the sets of Campaigns

	parsed map[string]any
}

// Subscription is the state of a subscriber on a list.
type Subscription struct {
	State string    // pending, subscribed or left
	Given time.Time // when it was agreed to
}

// Set reports whether it has the place of a subscriber. sendlog.Set.Has is one.
type Set func(place int) bool

// Engaged are the people who received a campaign's mail, and what they did with it. A nil set is empty.
type Engaged struct{ Got, Opened, Clicked Set }

// did reports whether the subscriber at a place got, opened or clicked.
func (e Engaged) did(what string, place int) bool {
	set := e.Got
	switch what {
	case "opened":
		set = e.Opened
	case "clicked":
		set = e.Clicked
	}
	return set != nil && set(place)
}

// attribute returns the value of an attribute, nil if there is none.
func (s *Subscriber) attribute(name string) any {
	if s.parsed == nil {
		s.parsed = map[string]any{}
		if len(s.Attributes) > 0 {
			_ = json.Unmarshal(s.Attributes, &s.parsed) // an unreadable one has no attributes
		}
	}
	return s.parsed[name]
}

// Holds reports whether a rule selects a subscriber.
func (r Rule) Holds(s *Subscriber, now time.Time) bool { return r.root == nil || r.root.holds(s, now) }

func (n *node) holds(s *Subscriber, now time.Time) bool {
	switch n.join {
	case "and":
		return !slices.ContainsFunc(n.parts, func(part *node) bool { return !part.holds(s, now) })
	case "or":
		return slices.ContainsFunc(n.parts, func(part *node) bool { return part.holds(s, now) })
	case "not":
		return !n.parts[0].holds(s, now)
	}
	return n.term.holds(s, now)
}

func (t *term) holds(s *Subscriber, now time.Time) bool {
	switch t.kind {
	case "attribute":
		return t.attributeHolds(s.attribute(t.name), now)
	case "tag":
		return slices.Contains(s.Tags, t.name)
	case "list":
		on, ok := s.Lists[strings.ToLower(t.name)]
		return ok && (t.op == "" || on.State == t.op)
	case "consent":
		on, ok := s.Lists[strings.ToLower(t.name)]
		return ok && on.State == "subscribed" && t.compares(on.Given, now)
	case "campaign":
		return s.Campaigns[t.name].did(t.op, s.Place)
	case "locale":
		return strings.EqualFold(s.Locale, t.name) || len(s.Locale) > len(t.name) &&
			strings.EqualFold(s.Locale[:len(t.name)+1], t.name+"-")
	case "domain":
		return strings.EqualFold(s.Email[strings.LastIndexByte(s.Email, '@')+1:],
			message.ASCIIDomain(strings.TrimPrefix(t.name, "@")))
	}
	return t.compares(s.Created, now)
}

// compares reports whether a time is before or after the term's time.
func (t *term) compares(at, now time.Time) bool {
	if t.op == "before" {
		return at.Before(t.when(now))
	}
	return !at.Before(t.when(now))
}

// attributeHolds reports whether the value of an attribute meets the term. nil if there is none.
func (t *term) attributeHolds(has any, now time.Time) bool {
	switch t.op {
	case "exists":
		return (has != nil) == t.value.(bool)
	case "isNot":
		return has == nil || !same(has, t.value)
	}
	if has == nil {
		return false
	}
	switch t.op {
	case "is":
		return same(has, t.value)
	case "in":
		return slices.ContainsFunc(t.value.([]any), func(one any) bool { return same(has, one) })
	case "contains":
		return contains(has, t.value.(string))
	case "startsWith":
		text, ok := has.(string)
		want := t.value.(string)
		return ok && len(text) >= len(want) && strings.EqualFold(text[:len(want)], want)
	case "before", "after":
		text, _ := has.(string)
		at, ok := date(text)
		return ok && t.compares(at, now)
	}
	number, ok := has.(float64)
	return ok && t.numberHolds(number)
}

func (t *term) numberHolds(number float64) bool {
	want := t.value.(float64)
	switch t.op {
	case "gt":
		return number > want
	case "gte":
		return number >= want
	case "lt":
		return number < want
	}
	return number <= want
}

// same compares values. Texts are compared without regard to case; a list is the same as each of its members.
func same(has, want any) bool {
	switch has := has.(type) {
	case string:
		text, ok := want.(string)
		return ok && strings.EqualFold(has, text)
	case []any:
		return slices.ContainsFunc(has, func(one any) bool { return same(one, want) })
	case float64:
		number, ok := want.(float64)
		return ok && has == number
	case bool:
		b, ok := want.(bool)
		return ok && has == b
	}
	return false
}

// contains reports whether a text has a part, or a list a member.
func contains(has any, want string) bool {
	switch has := has.(type) {
	case string:
		return strings.Contains(strings.ToLower(has), strings.ToLower(want))
	case []any:
		return slices.ContainsFunc(has, func(one any) bool { return same(one, want) })
	}
	return false
}
