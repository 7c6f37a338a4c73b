package ui

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/newsletter/audience"
)

// The editor of a segment shows a rule as rows, one for each term: what it is about, an operator and a value.
// A rule that rows can't express is shown as JSON. So is any rule if the visitor asks for it.

// mostTerms bounds the rows of the editor.
const mostTerms = 30

// segmentRow is a row of the editor.
type segmentRow struct {
	Number         int
	About          string // such as tag, attribute:plan, list:weekly; empty: nothing yet
	Operator       string
	Value          string
	Not            bool
	Subjects       []pickGroup // what About is chosen from
	OperatorGroups []pickGroup
}

// Field returns the name of one of its fields.
func (r segmentRow) Field(name string) string { return fmt.Sprintf("term.%d.%s", r.Number-1, name) }

// pickGroup is a part of a choice with a heading.
type pickGroup struct {
	Label string
	Picks []pick
}

// termOperators are the operators of each kind of term, the usual one first.
var termOperators = []pickGroup{
	{"Attributes", []pick{{ID: "is", Name: "is"}, {ID: "isNot", Name: "is not"}, {ID: "in", Name: "is one of"},
		{ID: "contains", Name: "contains"}, {ID: "startsWith", Name: "starts with"},
		{ID: "gt", Name: "is more than"}, {ID: "gte", Name: "is at least"}, {ID: "lt", Name: "is less than"},
		{ID: "lte", Name: "is at most"},
		{ID: "before", Name: "is before"}, {ID: "after", Name: "is after"}, {ID: "exists", Name: "is set"},
		{ID: "missing", Name: "is not set"}}},
	{"Lists", []pick{{ID: "subscribed", Name: "subscribed"}, {ID: "pending", Name: "not confirmed yet"},
		{ID: "left", Name: "unsubscribed"}, {ID: "any", Name: "any state"}}},
	{"Campaigns", []pick{{ID: "got", Name: "received it"}, {ID: "opened", Name: "opened it"},
		{ID: "clicked", Name: "clicked in it"}}},
	{"Dates", []pick{{ID: "after", Name: "after"}, {ID: "before", Name: "before"}}},
}

// operatorsOf are the indexes into termOperators by what a term is about. Others have no operator.
var operatorsOf = map[string]int{"attribute": 0, "list": 1, "campaign": 2, "created": 3, "consent": 3}

// operatorOf returns the operator of a row; the usual one if the row has one of another kind.
func operatorOf(kind, chosen string) string {
	group, has := operatorsOf[kind]
	if !has {
		return ""
	}
	picks := termOperators[group].Picks
	if slices.ContainsFunc(picks, func(p pick) bool { return p.ID == chosen }) {
		return chosen
	}
	return picks[0].ID
}

// term returns the JSON of a row. types are the types of the account's attributes.
func (r segmentRow) term(types map[string][]string) map[string]any {
	kind, name, _ := strings.Cut(r.About, ":")
	op := operatorOf(kind, r.Operator)
	term := map[string]any{kind: name}
	switch kind {
	case "attribute":
		op, value := attributeValue(op, r.Value, types[name])
		term[op] = value
	case "list":
		if op != "any" {
			term["state"] = op
		}
	case "campaign":
		term["did"] = op
	case "created":
		term[kind] = map[string]any{op: r.Value}
	case "consent":
		term[op] = r.Value
	default:
		term[kind] = r.Value
	}
	if r.Not {
		return map[string]any{"not": term}
	}
	return term
}

// attributeValue returns the operator and the value of a term about an attribute, with the type that the
// attribute has.
func attributeValue(op, text string, types []string) (string, any) {
	typed := func(text string) any {
		if n, err := strconv.ParseFloat(text, 64); err == nil && slices.Contains(types, "number") {
			return n
		}
		if (text == "true" || text == "false") && slices.Contains(types, "bool") {
			return text == "true"
		}
		return text
	}
	switch op {
	case "exists":
		return op, true
	case "missing":
		return "exists", false
	case "gt", "gte", "lt", "lte":
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return op, n
		}
	case "in":
		all := []any{}
		for one := range strings.SplitSeq(text, ",") {
			all = append(all, typed(strings.TrimSpace(one)))
		}
		return op, all
	case "is", "isNot":
		return op, typed(text)
	}
	return op, text
}

// segmentFields are what a form says about a rule: its rows, how they are joined, or JSON.
type segmentFields struct {
	JSON bool // the rule is edited as JSON
	Any  bool // one term is enough
	Rows []segmentRow
}

// readTerms returns the rows of a form that are about something.
func readTerms(f url.Values) segmentFields {
	fields := segmentFields{JSON: f.Has("json"), Any: f.Get("join") == "or"}
	for i := range mostTerms {
		r := segmentRow{Number: i + 1}
		get := func(name string) string { return strings.TrimSpace(f.Get(r.Field(name))) }
		r.About, r.Operator, r.Value, r.Not = get("about"), get("op"), get("value"), get("not") != ""
		if r.About != "" {
			r.Number = len(fields.Rows) + 1
			fields.Rows = append(fields.Rows, r)
		}
	}
	return fields
}

// rule returns the JSON of the rows; "" if there are none.
func (s segmentFields) rule(types map[string][]string) string {
	terms := make([]any, len(s.Rows))
	for i, r := range s.Rows {
		terms[i] = r.term(types)
	}
	var all any = map[string]any{map[bool]string{true: "or", false: "and"}[s.Any]: terms}
	switch len(terms) {
	case 0:
		return ""
	case 1:
		all = terms[0]
	}
	return plainJSON(all)
}

// plainJSON returns JSON without escaped letters.
func plainJSON(value any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(value) // maps, texts and numbers always encode
	return strings.TrimSpace(b.String())
}

// rowsOf returns a rule as rows, and whether they say exactly the same.
func rowsOf(rule string, types map[string][]string) (segmentFields, bool) {
	var root map[string]any
	if json.Unmarshal([]byte(rule), &root) != nil {
		return segmentFields{}, false
	}
	var fields segmentFields
	terms := []any{root}
	for _, join := range []string{"and", "or"} {
		if parts, ok := root[join].([]any); ok {
			terms, fields.Any = parts, join == "or"
		}
	}
	for i, one := range terms {
		term, _ := one.(map[string]any)
		r := segmentRow{Number: i + 1}
		if inner, ok := term["not"].(map[string]any); ok {
			r.Not, term = true, inner
		}
		r.fill(term)
		fields.Rows = append(fields.Rows, r)
	}
	return fields, len(terms) < mostTerms && fields.rule(types) == plainJSON(root)
}

// fill reads a term into the row. What it doesn't know is lost; rowsOf notices.
func (r *segmentRow) fill(term map[string]any) {
	for _, kind := range []string{"attribute", "tag", "list", "consent", "campaign", "locale", "domain",
		"created"} {
		body, ok := term[kind]
		if !ok {
			continue
		}
		name, _ := body.(string)
		switch r.About = kind + ":" + name; kind {
		case "tag", "locale", "domain":
			r.About, r.Value = kind, name
		case "created":
			r.About = kind
			inner, _ := body.(map[string]any)
			r.operator(inner)
		case "list":
			state, _ := term["state"].(string)
			r.Operator = cmp.Or(state, "any")
		case "campaign":
			r.Operator, _ = term["did"].(string)
		default:
			r.operator(term)
		}
	}
}

// operator reads the operator of a term and its value.
func (r *segmentRow) operator(term map[string]any) {
	for _, group := range []int{0, 3} {
		for _, op := range termOperators[group].Picks {
			value, ok := term[op.ID]
			if !ok {
				continue
			}
			r.Operator = op.ID
			switch v := value.(type) {
			case bool:
				if r.Value = strconv.FormatBool(v); op.ID == "exists" {
					r.Value, r.Operator = "", map[bool]string{true: "exists", false: "missing"}[v]
				}
			case []any:
				texts := make([]string, len(v))
				for i, one := range v {
					texts[i] = fmt.Sprint(one)
				}
				r.Value = strings.Join(texts, ", ")
			default:
				r.Value = fmt.Sprint(v)
			}
		}
	}
}

// segmentEditor is the form of a segment.
type segmentEditor struct {
	Form    form // its name, ID and account, and its rule as JSON
	Fields  segmentFields
	Account string
}

// editor returns the form of a segment, with rows to choose from. It uses the rule of f if f has no rows. A
// form without rows that was refused is shown as JSON.
func (u *UI) editor(r *http.Request, f url.Values, refused error) (segmentEditor, error) {
	account := cmp.Or(boundTo(r), strings.TrimSpace(f.Get("account")), audience.DefaultAccount)
	e := segmentEditor{Form: segmentForm(f), Fields: readTerms(f), Account: account}
	e.Fields.JSON = e.Fields.JSON || refused != nil && !f.Has("join")
	types, err := u.Audience.Attributes(r.Context(), account)
	if err != nil {
		return e, err
	}
	if rule := strings.TrimSpace(f.Get("rule")); len(e.Fields.Rows) == 0 && rule != "" {
		rows, same := rowsOf(rule, types)
		if same && !e.Fields.JSON {
			e.Fields = rows
		}
		e.Fields.JSON = e.Fields.JSON || !same
	} else if e.Fields.JSON && len(e.Fields.Rows) > 0 {
		f.Set("rule", e.Fields.rule(types))
	}
	lists, err := u.listPicks(r, account)
	if err != nil {
		return e, err
	}
	campaigns, err := u.Campaigns.Page(r.Context(), boundTo(r), api.CampaignQuery{Account: account,
		PageQuery: api.PageQuery{PageSize: mostPicks}})
	if err != nil {
		return e, err
	}
	subjects := subjectsOf(types, lists, campaigns.Campaigns)
	e.Fields.Rows = append(e.Fields.Rows, segmentRow{Number: len(e.Fields.Rows) + 1})
	for i := range e.Fields.Rows {
		row := &e.Fields.Rows[i]
		row.Subjects, row.OperatorGroups = withSubject(subjects, row.About), termOperators
	}
	return e, nil
}

// subjectsOf returns what a term can be about.
func subjectsOf(types map[string][]string, lists []pick, campaigns []api.CampaignInfo) []pickGroup {
	groups := []pickGroup{{"Subscriber", []pick{{ID: "tag", Name: "tag"}, {ID: "locale", Name: "language"},
		{ID: "domain", Name: "domain of the address"}, {ID: "created", Name: "date added"}}},
		{Label: "Attributes"}, {Label: "Lists"}, {Label: "Campaigns"}, {Label: "Consent dates"}}
	add := func(group int, id, name string) {
		groups[group].Picks = append(groups[group].Picks, pick{ID: id, Name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		add(1, "attribute:"+name, name)
	}
	for _, l := range lists {
		add(2, "list:"+l.ID, "list "+l.Name)
		add(4, "consent:"+l.ID, "consent to "+l.Name)
	}
	for _, c := range campaigns {
		if c.Run > 0 {
			add(3, "campaign:"+c.Campaign.Campaign, "campaign "+c.Name)
		}
	}
	return slices.DeleteFunc(groups, func(g pickGroup) bool { return len(g.Picks) == 0 })
}

// withSubject adds what a row is about, if it isn't among the choices.
func withSubject(groups []pickGroup, about string) []pickGroup {
	for _, g := range groups {
		if about == "" || slices.ContainsFunc(g.Picks, func(p pick) bool { return p.ID == about }) {
			return groups
		}
	}
	return append(slices.Clip(groups), pickGroup{"Others", []pick{{ID: about, Name: strings.Replace(about, ":",
		" ", 1)}}})
}

// segmentTrialView is what the frame next to the editor shows.
type segmentTrialView struct {
	audience.SegmentTrial
	Trouble string
	Sheet   string
}

// About returns how many subscribers of the account the rule selects, if only some were looked at.
func (v segmentTrialView) About() int {
	return int(float64(v.Count) / float64(max(1, v.Looked)) * float64(v.Total))
}

// trySegment answers the frame with what the rule of the editor selects.
func (u *UI) trySegment(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	var view segmentTrialView
	rule, err := u.readRule(r)
	if err == nil && string(rule) != `""` {
		view.SegmentTrial, err = u.Audience.Segments.Try(r.Context(), boundTo(r),
			strings.TrimSpace(r.PostForm.Get("account")), rule)
	}
	if _, words, refused := formTrouble(r, err); refused != nil {
		return refused
	} else if err != nil {
		view.Trouble = words
	}
	if view.Sheet, err = u.static.url("pages.css"); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := trialPage.ExecuteTemplate(&b, "segmenttrial.html", view); err != nil {
		return err
	}
	writeFrameUnder(w, trialPolicy, b.String())
	return nil
}

// reshapeSegment answers with the form as it was filled in and one more row, or with the rule as JSON.
func (u *UI) reshapeSegment(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := r.PostForm
	switch f.Get("show") {
	case "json":
		f.Set("json", "on")
	case "rows":
		f.Del("json")
	}
	if id := f.Get("id"); id != "" {
		r.SetPathValue("id", id)
		return u.showSegment(w, r, f, nil)
	}
	return u.showSegments(w, r, f, nil)
}
