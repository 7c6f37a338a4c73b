package audience_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/outbox/suppression"
)

// TestTwoSpellingsOfOneTextAreOneValue (RFC 5198 section 3, RFC 6532 section 3.1): files of a Mac have
// letters apart from their marks.
func TestTwoSpellingsOfOneTextAreOneValue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const apart, composed = "zoe\u0308@a.example", "zo\u00eb@a.example"
	b.list(t, "weekly", "single")
	o := subscribed("weekly")
	got := b.bring(t, "email,name,tags,attributes.city,attributes.all:list\n"+
		apart+",Zoe\u0308,e\u0301te\u0301,Zu\u0308rich,Zu\u0308rich|Bern\n"+composed+",Zo\u00eb,,,\n"+
		"ann@a.example,Ann,\u00e9t\u00e9,Z\u00fcrich,Z\u00fcrich\n", o)
	if got.Added != 2 || got.Repeated != 1 {
		t.Errorf("%+v", got)
	}
	if again := b.bring(t, "email\n"+composed+"\n"+apart+"\n", o); again.Known != 1 || again.Repeated != 1 {
		t.Errorf("again: %+v", again)
	}
	if export := b.export(t, "", "jsonl"); strings.Contains(export, "\u0308") || strings.Contains(export,
		"\u0301") {
		t.Errorf("letters are stored apart from their marks: %s", export)
	}
	for _, rule := range []string{`{"attribute":"city","is":"Zu%srich"}`, `{"attribute":"city","in":["Zu%srich"]}`,
		`{"attribute":"city","contains":"zu%sri"}`, `{"attribute":"city","startsWith":"zu%s"}`,
		`{"attribute":"all","is":"zu%srich"}`, `{"not":{"attribute":"city","isNot":"Zu%srich"}}`} {
		for _, mark := range []string{"\u0308", `\u0308`} {
			if n := b.selected(t, strings.ReplaceAll(rule, "%s", mark)); n != 2 {
				t.Errorf("%s selects %d", rule, n)
			}
		}
	}
	if n := b.selected(t, `{"tag":"e`+"\u0301"+`t\u00e9"}`); n != 2 {
		t.Errorf("a tag selects %d", n)
	}
	for _, name := range []string{"zoe\u0308", "zo\u00eb"} {
		page, err := b.Page(t.Context(), "", api.SubscriberQuery{Search: name, Tag: "\u00e9t\u00e9"})
		if err != nil || len(page.Subscribers) != 1 {
			t.Errorf("a search of %q: %+v, %v", name, page, err)
		}
	}
	if _, err := b.Suppressions.Add(t.Context(), suppression.Entry{Address: apart, Account: "default",
		Reason: suppression.Manual}); err != nil {
		t.Fatal(err)
	}
	found, err := b.Suppressions.Check(t.Context(), suppression.Question{Account: "default",
		Addresses: []string{composed, apart}})
	if err != nil || found[0] == nil || found[1] == nil {
		t.Errorf("a suppression stops one spelling only: %v, %v", found, err)
	}
}

// selected returns how many subscribers a rule selects.
func (b *bench) selected(t *testing.T, rule string) int {
	t.Helper()
	info, err := b.Segments.Create(t.Context(), "", api.Segment{Name: rule, Rule: json.RawMessage(rule)})
	if err != nil {
		t.Fatal(err)
	}
	page, err := b.Page(t.Context(), "", api.SubscriberQuery{Segment: info.Segment.Segment})
	if err != nil {
		t.Fatal(err)
	}
	return len(page.Subscribers)
}
