package segment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api/fault"
)

var now = time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)

func ann() *Subscriber {
	return &Subscriber{Email: "ann@Example.net", Locale: "de-AT", Created: now.Add(-10 * 24 * time.Hour),
		Attributes: []byte(`{"plan":"Pro","seats":3,"vip":true,"colors":["red","blue"],"born":"1990-05-01"}`),
		Tags:       []string{"beta"},
		Lists: map[string]Subscription{"weekly": {State: "subscribed", Given: now.Add(-400 * 24 * time.Hour)},
			"news": {State: "left", Given: now}},
		Place: 7, Campaigns: map[string]Engaged{"Spring": {Got: only(7), Opened: only(7), Clicked: only(8)},
			"winter": {Got: only(7)}}}
}

// only is the set of one place.
func only(one int) Set { return func(place int) bool { return place == one } }

// TestRules has a rule, whether it selects Ann, and its sentence.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		rule  string
		holds bool
		words string
	}{
		{`{"attribute":"plan","is":"pro"}`, true, `plan is “pro”`},
		{`{"attribute":"plan","is":"free"}`, false, `plan is “free”`},
		{`{"attribute":"plan","isNot":"free"}`, true, `plan is not “free”`},
		{`{"attribute":"none","isNot":"x"}`, true, `none is not “x”`},
		{`{"attribute":"none","is":"x"}`, false, `none is “x”`},
		{`{"attribute":"none","lt":5}`, false, `none is less than 5`},
		{`{"attribute":"none","exists":false}`, true, `has no none`},
		{`{"attribute":"plan","exists":true}`, true, `has plan`},
		{`{"attribute":"plan","gte":3}`, false, `plan is at least 3`}, // another type
		{`{"attribute":"seats","gte":3}`, true, `seats is at least 3`},
		{`{"attribute":"seats","gt":3}`, false, `seats is more than 3`},
		{`{"attribute":"seats","lte":2.5}`, false, `seats is at most 2.5`},
		{`{"attribute":"seats","in":[1,3]}`, true, `seats is one of 1, 3`},
		{`{"attribute":"plan","in":["free","PRO"]}`, true, `plan is one of “free”, “PRO”`},
		{`{"attribute":"vip","is":true}`, true, `vip is true`},
		{`{"attribute":"colors","contains":"red"}`, true, `colors contains “red”`},
		{`{"attribute":"colors","is":"green"}`, false, `colors is “green”`},
		{`{"attribute":"plan","contains":"r"}`, true, `plan contains “r”`},
		{`{"attribute":"plan","startsWith":"PR"}`, true, `plan begins with “PR”`},
		{`{"attribute":"born","before":"2000-01-01"}`, true, `born is before 2000-01-01`},
		{`{"attribute":"born","after":"-30d"}`, false, `born is in the last 30 days`},
		{`{"attribute":"plan","before":"2000-01-01"}`, false, `plan is before 2000-01-01`},
		{`{"tag":"beta"}`, true, `tag “beta”`},
		{`{"tag":"Beta"}`, false, `tag “Beta”`},
		{`{"list":"Weekly","state":"subscribed"}`, true, `subscribed on list Weekly`},
		{`{"list":"news","state":"subscribed"}`, false, `subscribed on list news`},
		{`{"list":"news"}`, true, `on list news`},
		{`{"consent":"weekly","before":"-365d"}`, true, `agreed to list weekly more than 365 days ago`},
		{`{"consent":"news","before":"-1h"}`, false, `agreed to list news more than 1 hours ago`},
		{`{"campaign":"Spring","did":"got"}`, true, `got campaign Spring`},
		{`{"campaign":"Spring","did":"opened"}`, true, `opened campaign Spring`},
		{`{"campaign":"Spring","did":"clicked"}`, false, `clicked in campaign Spring`}, // somebody else did
		{`{"campaign":"spring","did":"got"}`, false, `got campaign spring`},            // another id
		{`{"campaign":"winter","did":"opened"}`, false, `opened campaign winter`},
		{`{"and":[{"campaign":"winter","did":"got"},{"not":{"campaign":"winter","did":"opened"}}]}`, true,
			`got campaign winter, and not (opened campaign winter)`},
		{`{"locale":"de"}`, true, `language de`},
		{`{"locale":"d"}`, false, `language d`},
		{`{"domain":"example.NET"}`, true, `address at example.NET`},
		{`{"created":{"after":"-30d"}}`, true, `came in the last 30 days`},
		{`{"created":{"before":"2030-01-21"}}`, false, `came before 2030-01-21`},
		{`{"not":{"tag":"beta"}}`, false, `not (tag “beta”)`},
		{`{"and":[{"tag":"beta"},{"or":[{"tag":"x"},{"locale":"de"}]}]}`, true,
			`tag “beta”, and (tag “x”, or language de)`},
		{`{"or":[{"tag":"x"},{"not":{"tag":"beta"}}]}`, false, `tag “x”, or not (tag “beta”)`},
	} {
		r, err := Parse("rule", []byte(row.rule))
		if err != nil {
			t.Errorf("%s: %v", row.rule, err)
			continue
		}
		if got := r.Holds(ann(), now); got != row.holds {
			t.Errorf("%s: holds %v", row.rule, got)
		}
		if got := r.Sentence(); got != row.words {
			t.Errorf("%s: %q, want %q", row.rule, got, row.words)
		}
	}
}

func TestWrongRulesNameTheFault(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"not":`, 9) + `{"tag":"x"}` + strings.Repeat("}", 9)
	many := `{"or":[` + strings.Repeat(`{"tag":"x"},`, 10_000) + `{"tag":"x"}]}`
	for _, row := range []struct{ rule, want string }{
		{``, "rule"}, {`null`, "rule"}, {`[]`, "rule"}, {`{}`, "rule"}, {`{"tag":1}`, "rule.tag"},
		{`{"and":[]}`, "rule.and"}, {`{"and":[{"tag":"x"},{"tag":""}]}`, "rule.and[1].tag"},
		{`{"and":[{"tag":"x"}],"or":[]}`, "rule"}, {`{"what":"x"}`, "rule"},
		{`{"tag":"x","is":"y"}`, "rule.is"}, {`{"attribute":"seats"}`, "rule"},
		{`{"attribute":"seats","gt":"3"}`, "rule.gt"}, {`{"attribute":"seats","gt":3,"lt":5}`, "rule"},
		{`{"attribute":"__proto__","is":1}`, "rule.attribute"}, {`{"attribute":"a","in":[]}`, "rule.in"},
		{`{"attribute":"a","is":{"b":1}}`, "rule.is"}, {`{"attribute":"a","exists":1}`, "rule.exists"},
		{`{"attribute":"a","before":"soon"}`, "rule.before"}, {`{"list":"a","state":"away"}`, "rule.state"},
		{`{"consent":"a"}`, "rule"}, {`{"created":{}}`, "rule.created"}, {`{"created":"-3d"}`, "rule.created"},
		{`{"attribute":"a","matches":"x"}`, "rule"}, {`{"campaign":"c"}`, "rule.did"},
		{`{"or":[{"campaign":"c","did":"read"}]}`, "rule.or[0].did"}, {`{"campaign":"","did":"got"}`, "rule.campaign"},
		{`{"campaign":"c","did":"got","run":1}`, "rule.run"}, {`{"campaign":"c","did":null}`, "rule.did"},
		{deep, "rule" + strings.Repeat(".not", 8)}, {many, "rule"},
	} {
		_, err := Parse("rule", []byte(row.rule))
		f, ok := err.(*fault.Error)
		if !ok || f.Kind != fault.Invalid || f.Fields[0].Key != row.want {
			t.Errorf("%.60s: %v, want a fault of %s", row.rule, err, row.want)
		}
	}
}

func TestExplainTellsWhatASubscriberHas(t *testing.T) {
	t.Parallel()
	r, err := Parse("rule", []byte(`{"and":[{"attribute":"seats","gte":5},{"list":"weekly","state":"left"},
		{"campaign":"Spring","did":"clicked"},{"campaign":"none","did":"got"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got := r.Explain(ann(), now)
	want := []Held{{"seats is at least 5", "3", false}, {"left on list weekly", "subscribed", false},
		{"clicked in campaign Spring", "got, opened", false}, {"got campaign none", "", false}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestARuleTellsWhichCampaignsItNamesAndWhere(t *testing.T) {
	t.Parallel()
	r, err := Parse("rule", []byte(`{"or":[{"tag":"x"},{"not":{"campaign":"b","did":"got"}},
		{"campaign":"a","did":"opened"}]}`))
	want := []Mention{{"rule.or[1].not.campaign", "b"}, {"rule.or[2].campaign", "a"}}
	if err != nil || !slices.Equal(r.Campaigns(), want) {
		t.Errorf("%+v, %v", r.Campaigns(), err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"and":[{"attribute":"seats","gte":3},{"not":{"created":{"after":"-30d"}}}]}`))
	f.Add([]byte(`{"or":[{"campaign":"Spring","did":"opened"},{"not":{"campaign":"x","did":"got"}}]}`))
	f.Fuzz(func(_ *testing.T, raw []byte) {
		if r, err := Parse("rule", raw); err == nil {
			r.Sentence()
			r.Holds(ann(), now)
			r.Explain(ann(), now)
		}
	})
}

// TestDomainsHaveTwoForms finds subscribers by either form of an international domain (RFC 5890, 2.3.2.1).
func TestDomainsHaveTwoForms(t *testing.T) {
	s := ann()
	s.Email = "ann@xn--bcher-kva.example"
	for _, name := range []string{"bücher.example", "@B\u00dcCHER.example", "bu\u0308cher.example",
		"XN--bcher-kva.example"} {
		rule, err := Parse("rule", []byte(`{"domain":"`+name+`"}`))
		if err != nil || !rule.Holds(s, now) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
