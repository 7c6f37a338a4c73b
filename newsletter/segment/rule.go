package segment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/api/fault"
)

// Bounds of a rule.
const (
	MaxTerms = 200
	MaxDepth = 8
	MaxBytes = 64 << 10
	maxIn    = 200  // values of in
	maxValue = 1024 // bytes of a value
)

// Rule is a rule that was read. The zero Rule holds for everybody.
type Rule struct {
	root      *node
	terms     []*term
	lists     []string
	campaigns []Mention
}

// Mention is a campaign that a rule names, and where.
type Mention struct{ Key, Campaign string }

// node is a part of a rule: a term, or what joins parts.
type node struct {
	join  string // and, or, not; empty for a term
	parts []*node
	term  *term
}

// term is a condition.
type term struct {
	key   string // where it is, such as rule.and[1]
	kind  string // attribute, tag, list, consent, campaign, locale, domain, created
	name  string // the attribute's, tag's, list's, campaign's, language's or domain's
	op    string // is, isNot, …; a state; what somebody did; before or after (consent, created); may be empty
	value any    // string, float64, bool, []any
	moment
}

// moment is a point in time: a fixed one, or a span before now.
type moment struct {
	at     time.Time
	before time.Duration // a span before now, if at is zero
}

func (m moment) when(now time.Time) time.Time {
	if m.at.IsZero() {
		return now.Add(-m.before)
	}
	return m.at
}

// attributeNames matches the names of attributes.
var attributeNames = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// operators are the attributes' operators, with the word that a sentence has for each.
var operators = map[string]string{
	"is": "is", "isNot": "is not", "in": "is one of", "contains": "contains", "startsWith": "begins with",
	"gt": "is more than", "gte": "is at least", "lt": "is less than", "lte": "is at most",
	"before": "is before", "after": "is after", "exists": "",
}

// Parse reads a rule. Its errors name fields below key.
func Parse(key string, raw []byte) (Rule, error) {
	p := parser{}
	if len(raw) > MaxBytes {
		p.fail(key, "has %d bytes; at most %d are possible", len(raw), MaxBytes)
		return Rule{}, fault.InvalidFields(p.wrong)
	}
	root := p.node(key, raw, 1)
	if len(p.terms) > MaxTerms {
		p.fail(key, "has more than %d terms", MaxTerms)
	}
	r := Rule{root: root, terms: p.terms}
	for _, t := range r.terms {
		switch t.kind {
		case "list", "consent":
			r.lists = append(r.lists, t.name)
		case "campaign":
			r.campaigns = append(r.campaigns, Mention{Key: t.key + ".campaign", Campaign: t.name})
		}
	}
	return r, fault.InvalidFields(p.wrong)
}

// Lists returns the ids of the lists that a rule names.
func (r Rule) Lists() []string { return r.lists }

// Campaigns returns the campaigns that a rule names.
func (r Rule) Campaigns() []Mention { return r.campaigns }

// parser collects a rule's terms and errors.
type parser struct {
	terms []*term
	wrong fault.Fields
}

func (p *parser) fail(key, format string, args ...any) {
	if len(p.wrong) < 20 {
		p.wrong.Add(key, format, args...)
	}
}

// node reads a part of a rule.
func (p *parser) node(key string, raw []byte, depth int) *node {
	if depth > MaxDepth {
		p.fail(key, "is deeper than %d levels", MaxDepth)
		return &node{}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || len(fields) == 0 {
		p.fail(key, "must be an object with a rule, such as {\"tag\":\"beta\"}")
		return &node{}
	}
	for _, join := range [...]string{"and", "or", "not"} {
		body, ok := fields[join]
		if !ok {
			continue
		}
		if len(fields) > 1 {
			p.fail(key, "can't have other fields next to %s", join)
		}
		n := &node{join: join}
		if join == "not" {
			n.parts = []*node{p.node(key+".not", body, depth+1)}
			return n
		}
		var parts []json.RawMessage
		if err := json.Unmarshal(body, &parts); err != nil || len(parts) == 0 {
			p.fail(key+"."+join, "must be a list of rules")
			return n
		}
		for i, part := range parts {
			if len(p.terms) > MaxTerms {
				break
			}
			n.parts = append(n.parts, p.node(fmt.Sprintf("%s.%s[%d]", key, join, i), part, depth+1))
		}
		return n
	}
	t := p.term(key, fields)
	p.terms = append(p.terms, t)
	return &node{term: t}
}

// term reads a term.
func (p *parser) term(key string, fields map[string]json.RawMessage) *term {
	kinds := [...]string{"attribute", "tag", "list", "consent", "campaign", "locale", "domain", "created"}
	at := slices.IndexFunc(kinds[:], func(kind string) bool { _, ok := fields[kind]; return ok })
	if at < 0 {
		p.fail(key, "must have one of and, or, not, %s", strings.Join(kinds[:], ", "))
		return &term{}
	}
	t := &term{key: key, kind: kinds[at]}
	body := fields[t.kind]
	delete(fields, t.kind)
	if t.kind == "created" {
		var inner map[string]json.RawMessage
		if err := json.Unmarshal(body, &inner); err != nil || len(fields) > 0 {
			p.fail(key+".created", "must be only {\"after\":…} or {\"before\":…}")
			return t
		}
		p.bound(t, key+".created", inner)
		return t
	}
	if err := json.Unmarshal(body, &t.name); err != nil || strings.TrimSpace(t.name) == "" ||
		len(t.name) > maxValue {
		p.fail(key+"."+t.kind, "must be a text")
	}
	t.name = norm.NFC.String(t.name)
	switch t.kind {
	case "attribute":
		p.attribute(t, key, fields)
	case "list":
		p.state(t, key, fields)
	case "consent":
		p.bound(t, key, fields)
	case "campaign":
		p.did(t, key, fields)
	default:
		t.name = strings.TrimSpace(t.name)
		p.nothingElse(key, fields)
	}
	return t
}

func (p *parser) nothingElse(key string, fields map[string]json.RawMessage) {
	for name := range fields {
		p.fail(key+"."+name, "is not known here")
	}
}

// state reads the rest of a term about a list.
func (p *parser) state(t *term, key string, fields map[string]json.RawMessage) {
	if raw, ok := fields["state"]; ok {
		delete(fields, "state")
		if err := json.Unmarshal(raw, &t.op); err != nil ||
			!slices.Contains([]string{"pending", "subscribed", "left"}, t.op) {
			p.fail(key+".state", "must be pending, subscribed or left")
		}
	}
	p.nothingElse(key, fields)
}

// did reads the rest of a term about a campaign.
func (p *parser) did(t *term, key string, fields map[string]json.RawMessage) {
	if err := json.Unmarshal(fields["did"], &t.op); err != nil ||
		!slices.Contains([]string{"got", "opened", "clicked"}, t.op) {
		p.fail(key+".did", "must be got, opened or clicked")
	}
	delete(fields, "did")
	p.nothingElse(key, fields)
}

// bound reads before or after.
func (p *parser) bound(t *term, key string, fields map[string]json.RawMessage) {
	for _, op := range [...]string{"before", "after"} {
		if raw, ok := fields[op]; ok && t.op == "" {
			delete(fields, op)
			t.op = op
			t.moment = p.moment(key+"."+op, raw)
		}
	}
	if t.op == "" {
		p.fail(key, "must have before or after")
	}
	p.nothingElse(key, fields)
}

// spans matches a span before now.
var spans = regexp.MustCompile(`^-([0-9]{1,5})([dh])$`)

// moment reads a date, a time or a span.
func (p *parser) moment(key string, raw []byte) moment {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		if m := spans.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1])
			unit := time.Hour
			if m[2] == "d" {
				unit = 24 * time.Hour
			}
			return moment{before: time.Duration(n) * unit}
		}
		if at, ok := date(text); ok {
			return moment{at: at}
		}
	}
	p.fail(key, "must be a date such as 2030-12-31, a time, or a span before now such as -30d")
	return moment{}
}

// date reads a date, or a time in RFC 3339.
func date(text string) (time.Time, bool) {
	for _, form := range [...]string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(form, text); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// attribute reads the operator of a term about an attribute.
func (p *parser) attribute(t *term, key string, fields map[string]json.RawMessage) {
	if !attributeNames.MatchString(t.name) {
		p.fail(key+".attribute", "must be an attribute's name: a letter and up to 63 letters, digits and _")
	}
	for op := range operators {
		raw, ok := fields[op]
		if !ok {
			continue
		}
		if t.op != "" {
			p.fail(key, "has two conditions, %s and %s; join them with and", t.op, op)
		}
		delete(fields, op)
		t.op = op
		p.value(t, key+"."+op, raw)
	}
	if t.op == "" {
		p.fail(key, "must have a condition: is, isNot, in, contains, startsWith, gt, gte, lt, lte, before, after"+
			" or exists")
	}
	p.nothingElse(key, fields)
}

// value reads what an attribute is compared with.
func (p *parser) value(t *term, key string, raw []byte) {
	if t.op == "before" || t.op == "after" {
		t.moment = p.moment(key, raw)
		return
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(&t.value); err != nil {
		p.fail(key, "can't be read")
		return
	}
	t.value = composed(t.value)
	_, isText := t.value.(string)
	_, isNumber := t.value.(float64)
	_, isBool := t.value.(bool)
	list, isList := t.value.([]any)
	switch t.op {
	case "exists":
		if !isBool {
			p.fail(key, "must be true or false")
		}
	case "gt", "gte", "lt", "lte":
		if !isNumber {
			p.fail(key, "must be a number")
		}
	case "contains", "startsWith":
		if !isText {
			p.fail(key, "must be a text")
		}
	case "in":
		if !isList || len(list) == 0 || len(list) > maxIn || slices.ContainsFunc(list, notPlain) {
			p.fail(key, "must be a list of 1 to %d texts or numbers", maxIn)
		}
	default:
		if !isText && !isNumber && !isBool {
			p.fail(key, "must be a text, a number, true or false")
		}
	}
	if text, _ := t.value.(string); len(text) > maxValue {
		p.fail(key, "has %d bytes; at most %d are possible", len(text), maxValue)
	}
}

// composed returns a value whose texts have composed letters, as subscribers' texts do.
func composed(value any) any {
	switch v := value.(type) {
	case string:
		return norm.NFC.String(v)
	case []any:
		for i := range v {
			v[i] = composed(v[i])
		}
	}
	return value
}

func notPlain(value any) bool {
	text, isText := value.(string)
	_, isNumber := value.(float64)
	return !isText && !isNumber || len(text) > maxValue
}
