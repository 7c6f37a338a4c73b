package ui

import (
	"net/url"
	"testing"
)

// TestRulesThatRowsCanShow come back as they were. Other rules are left to the JSON field.
func TestRulesThatRowsCanShow(t *testing.T) {
	t.Parallel()
	types := map[string][]string{"seats": {"number"}, "plan": {"string"}, "paid": {"bool"}, "zip": {"string"}}
	for rule, same := range map[string]bool{
		`{"tag":"beta"}`:                                                   true,
		`{"not":{"tag":"<b>"}}`:                                            true,
		`{"attribute":"seats","gte":3}`:                                    true,
		`{"attribute":"paid","is":true}`:                                   true,
		`{"attribute":"plan","in":["pro","team"]}`:                         true,
		`{"attribute":"plan","exists":false}`:                              true,
		`{"attribute":"zip","is":"8001"}`:                                  true,
		`{"and":[{"list":"weekly"},{"list":"news","state":"subscribed"}]}`: true,
		`{"or":[{"campaign":"spring","did":"opened"},{"not":{"campaign":"spring","did":"got"}}]}`: true,
		`{"and":[{"created":{"after":"-30d"}},{"consent":"weekly","before":"2026-01-01"},` +
			`{"domain":"gmail.com"},{"locale":"de"}]}`: true,
		`{"attribute":"zip","is":8001}`:                      false, // rows would make it a text
		`{"attribute":"plan","in":["a, b"]}`:                 false,
		`{"and":[{"or":[{"tag":"a"},{"tag":"b"}]}]}`:         false,
		`{"not":{"and":[{"tag":"a"},{"tag":"b"}]}}`:          false,
		`{"and":[{"tag":"a"}]}`:                              false, // rows would make it a single term
		`{"tag":"a","colour":"red"}`:                         false,
		`{"attribute":"seats","gte":3,"lte":5}`:              false,
		`[]`:                                                 false,
		`{}`:                                                 false,
		`{"campaign":"spring","did":"forwarded"}`:            false,
		`{"and":[{"tag":"a"},5]}`:                            false,
		`{"list":"weekly","state":"subscribed","since":"x"}`: false,
	} {
		rows, got := rowsOf(rule, types)
		if got != same {
			t.Errorf("%s is shown as rows: %v, and as %s", rule, got, rows.rule(types))
		}
	}
}

// TestTheEditorOfASegment adds a condition, shows the rule as JSON and back, and counts what it selects.
func TestTheEditorOfASegment(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.list("default", "news")
	w.subscriber("default", "ann@example.com", "news")
	w.subscriber("default", "ben@example.com")
	b := w.operator()
	f := url.Values{"name": {"On <the> list"}, "join": {"or"}, "term.0.about": {"list:news"},
		"term.0.op": {"subscribed"}, "term.2.about": {"tag"}, "term.2.value": {"<vip>"}, "term.2.not": {"on"}}
	p := b.post("/segments/new/form", f)
	p.isSafe(t, "/segments/new/form")
	p.eachFieldHasALabel(t, "/segments/new/form")
	p.has(t, `value="On <the> list"`, `value="list:news" selected`, `name="term.1.value" value="<vip>"`,
		`name="term.1.not" checked`, `value="or" checked`, `name="term.2.about"`)
	f.Set("show", "json")
	p = b.post("/segments/new/form", f)
	rule := `{"or":[{"list":"news","state":"subscribed"},{"not":{"tag":"<vip>"}}]}`
	p.has(t, ">"+rule+"</textarea>", "Edit as conditions")
	p = b.post("/segments/new/form", url.Values{"rule": {rule}, "show": {"rows"}, "json": {"on"}})
	p.has(t, `name="term.1.value" value="<vip>"`, "Edit as JSON")
	f.Del("show")
	b.post("/segments/new/try", f).has(t, "<strong>2</strong> of 2 subscribers", "or not (tag “<vip>”)")
	f.Set("join", "and")
	f.Del("term.2.not")
	b.post("/segments/new/try", f).has(t, "<strong>0</strong> of 2 subscribers")
	b.post("/segments/new/try", url.Values{"term.0.about": {"attribute:seats"}, "term.0.op": {"gte"},
		"term.0.value": {"many"}}).has(t, "must be a number")
	b.post("/segments/new/try", nil).has(t, "Add a condition")
	f.Set("segment", "s1")
	b.submitForm("/segments", f).has(t, "created.", `name="term.1.value" value="<vip>"`)
	b.submitForm("/segments/s1", url.Values{"name": {"S"}, "version": {"1"}, "account": {"default"},
		"term.0.about": {"domain"}, "term.0.value": {"example.com"}}).has(t, "Segment saved.",
		`value="example.com"`)
}
