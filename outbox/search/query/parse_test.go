package query_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/outbox/search/query"
)

var now = time.Date(2030, 1, 31, 12, 0, 0, 500_000_000, time.UTC)

// word is what a bare word means.
func word(w string) query.Node {
	return query.Or{
		query.Term{Field: query.Subject, Value: w}, query.Term{Field: query.Text, Value: w},
		query.Term{Field: query.To, Value: w}, query.Term{Field: query.From, Value: w},
		query.Term{Field: query.ID, Value: w},
	}
}

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want query.Node
	}{
		"nothing":              {"", query.All{}},
		"spaces":               {" \t ", query.All{}},
		"a word":               {"Invoice", word("invoice")},
		"accents are folded":   {"MÜLLER", word("muller")},
		"two words":            {"ann invoice", query.And{word("ann"), word("invoice")}},
		"AND is the default":   {"ann AND invoice", query.And{word("ann"), word("invoice")}},
		"OR binds weaker":      {"a1 b1 OR c1", query.Or{query.And{word("a1"), word("b1")}, word("c1")}},
		"parentheses":          {"a1 (b1 OR c1)", query.And{word("a1"), query.Or{word("b1"), word("c1")}}},
		"or in lower case":     {"a1 or b1", query.And{word("a1"), word("or"), word("b1")}},
		"negation":             {"-spam", query.Not{Part: word("spam")}},
		"NOT":                  {"NOT spam", query.Not{Part: word("spam")}},
		"a dash inside a word": {"e-mail", nil},
		"a phrase": {`"your invoice"`, query.Or{
			query.Phrase{Field: query.Subject, Words: []string{"your", "invoice"}}, query.Phrase{Field: query.Text,
				Words: []string{"your", "invoice"}},
		}},
		"a prefix": {"inv*", query.Or{
			query.Prefix{Field: query.Subject, Value: "inv"}, query.Prefix{Field: query.Text, Value: "inv"},
			query.Prefix{Field: query.To, Value: "inv"}, query.Prefix{Field: query.From, Value: "inv"},
			query.Prefix{Field: query.ID, Value: "inv"},
		}},
		"a prefix of several words": {"INV-20*", query.Or{
			query.Phrase{Field: query.Subject, Words: []string{"inv", "20"}, Prefix: true},
			query.Phrase{Field: query.Text, Words: []string{"inv", "20"}, Prefix: true},
			query.Prefix{Field: query.To, Value: "inv-20"}, query.Prefix{Field: query.From, Value: "inv-20"},
			query.Prefix{Field: query.ID, Value: "inv-20"},
		}},
		"subject, a prefix of several words": {"subject:v1.2*", query.Phrase{Field: query.Subject,
			Words: []string{"v1", "2"}, Prefix: true}},
		"an address": {"Ann@Example.com", query.Or{
			query.Phrase{Field: query.Subject, Words: []string{"ann", "example", "com"}},
			query.Phrase{Field: query.Text, Words: []string{"ann", "example", "com"}},
			query.Term{Field: query.To, Value: "ann@example.com"},
			query.Term{Field: query.From, Value: "ann@example.com"},
			query.Term{Field: query.ID, Value: "ann@example.com"},
		}},
		"to an international domain": {"to:müller@Bücher.example", query.Or{
			query.Term{Field: query.To, Value: "muller@bucher.example"},
			query.Term{Field: query.To, Value: "muller@xn--bcher-kva.example"},
		}},
		"a prefix of one": {"from:@stra\u00dfe.ex*", query.Or{query.Prefix{Field: query.From, Value: "strasse.ex"},
			query.Prefix{Field: query.From, Value: "xn--strae-oqa.ex"}}},
		"to, pasted":      {"to:mailto:<Ann@Example.com>,", query.Term{Field: query.To, Value: "ann@example.com"}},
		"to":              {"to:Ann@Example.com", query.Term{Field: query.To, Value: "ann@example.com"}},
		"to a domain":     {"to:@example.com", query.Term{Field: query.To, Value: "example.com"}},
		"to, in brackets": {"to:<ann@example.com>", query.Term{Field: query.To, Value: "ann@example.com"}},
		"from a prefix":   {"FROM:ann*", query.Term{}},
		"subject":         {"subject:Invoice", query.Term{Field: query.Subject, Value: "invoice"}},
		"subject, a phrase": {`subject:"your invoice"`, query.Phrase{Field: query.Subject,
			Words: []string{"your", "invoice"}}},
		"text":            {"text:inv*", query.Prefix{Field: query.Text, Value: "inv"}},
		"status":          {"status:Sent", query.Term{Field: query.Status, Value: "sent"}},
		"lane":            {"lane:bulk", query.Term{Field: query.Lane, Value: "bulk"}},
		"tag, as it is":   {"tag:Spring", query.Term{Field: query.Tag, Value: "Spring"}},
		"tag with spaces": {`tag:"spring sale"`, query.Term{Field: query.Tag, Value: "spring sale"}},
		"account":         {"account:Shop", query.Term{Field: query.Account, Value: "Shop"}},
		"gateway":         {"gateway:eu*", query.Prefix{Field: query.Gateway, Value: "eu"}},
		"code":            {"code:eauth", query.Term{Field: query.Code, Value: "EAUTH"}},
		"id":              {"id:01ABC", query.Term{Field: query.ID, Value: "01abc"}},
		"not to": {"-to:ann@example.com",
			query.Not{Part: query.Term{Field: query.To, Value: "ann@example.com"}}},
		"before a date": {"before:2030-01-02",
			query.Created{Until: time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)}},
		"after a time": {"after:2030-01-02T15:04",
			query.Created{From: time.Date(2030, 1, 2, 15, 4, 0, 0, time.UTC)}},
		"a time with a zone": {"after:2030-01-02T15:04:05+01:00",
			query.Created{From: time.Date(2030, 1, 2, 14, 4, 5, 0, time.UTC)}},
		"a day and a half ago": {"after:1d12h", query.Created{From: time.Date(2030, 1, 30, 0, 0, 0, 0, time.UTC)}},
		"a week ago":           {"after:7d", query.Created{From: time.Date(2030, 1, 24, 12, 0, 0, 0, time.UTC)}},
		"hours ago":            {"before:24h", query.Created{Until: time.Date(2030, 1, 30, 12, 0, 0, 0, time.UTC)}},
		"all of them": {"a1 -b1 to:c1", query.And{word("a1"), query.Not{Part: word("b1")},
			query.Term{Field: query.To, Value: "c1"}}},
		"Chinese":              {"发票", nil},
		"OR in quotes":         {`"OR"`, nil},
		"a colon in quotes":    {`"re: hello"`, nil},
		"no spaces in between": {`a1(b1)`, query.And{word("a1"), word("b1")}},
	} {
		got, err := query.Parse(c.text, now)
		if err != nil {
			t.Errorf("%s: %q: %v", name, c.text, err)
			continue
		}
		want := c.want
		switch name {
		case "a dash inside a word":
			want = bareWords("e-mail", "e", "mail")
		case "Chinese":
			want = bareWords("发票", "发", "票")
		case "from a prefix":
			want = query.Prefix{Field: query.From, Value: "ann"}
		case "OR in quotes":
			want = word("or")
		case "a colon in quotes":
			want = query.Or{query.Phrase{Field: query.Subject, Words: []string{"re", "hello"}},
				query.Phrase{Field: query.Text, Words: []string{"re", "hello"}}}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %q (-want +got):\n%s", name, c.text, diff)
		}
	}
}

// bareWords is what a bare word means that is several words of a text.
func bareWords(whole string, words ...string) query.Node {
	return query.Or{
		query.Phrase{Field: query.Subject, Words: words}, query.Phrase{Field: query.Text, Words: words},
		query.Term{Field: query.To, Value: whole}, query.Term{Field: query.From, Value: whole},
		query.Term{Field: query.ID, Value: whole},
	}
}

func TestParseNamesThePlace(t *testing.T) {
	for text, want := range map[string]string{
		`ann to:`:                 `at character 5, "to:": the search term is missing after to:`,
		`size:5`:                  `at character 1, "size:5": there is no field size. Use one of account:, after:`,
		`status:gone`:             `at character 8, "gone": status is one of queued, sending`,
		`status:se*`:              `at character 8, "se*": status is one of`,
		`"open`:                   `at character 1, "\"open": this quote is never closed`,
		`ann (bob`:                `at character 5, "(bob": this parenthesis is never closed`,
		`ann) bob`:                `at character 4, ")": this parenthesis closes nothing`,
		`ann OR`:                  `at character 7, the end: a search term is missing here`,
		`to:<>`:                   `at character 4, "<>": this contains nothing to search for`,
		`OR ann`:                  `at character 1, "OR": a search term is missing here`,
		`()`:                      `at character 2, ")": a search term is missing here`,
		`ann AND`:                 `at character 5, "AND": AND must be between two search terms`,
		`AND ann`:                 `at character 1, "AND": AND must be between two search terms`,
		`ann -`:                   `at character 5, "-": the term to exclude is missing`,
		`ann - bob`:               `at character 5, "-": a - must be directly before the term to exclude`,
		`a*`:                      `at character 1, "a*": a prefix has at least 2 letters`,
		`*`:                       `at character 1, "*": a prefix has at least 2 letters`,
		`in*voice`:                `at character 1, "in*voice": a * is possible only at the end of a word`,
		`!!!`:                     `at character 1, "!!!": there is no letter or digit`,
		`subject:?`:               `at character 9, "?": there is no letter or digit`,
		`after:yesterday`:         `at character 7, "yesterday": a time is a date`,
		`after:99999999999999d`:   `at character 7, "99999999999999d": a time is a date`,
		`before:2030-13-01`:       `a time is a date`,
		`é é status:x`:            `at character 12, "x": status is one of`,
		strings.Repeat("x", 1001): `at character 1001, "x": a query has at most 1000 characters, this one has 1001`,
		strings.Repeat("xy ", 51): `at character 151, "xy": a query has at most 50 terms`,
		strings.Repeat("(", 11) +
			"x": `at character 11, "(x": parentheses and negations are nested more than 10 deep`,
		strings.Repeat("-", 500) + "x":    `nested more than 10 deep`,
		strings.Repeat("NOT ", 200) + "x": `nested more than 10 deep`,
	} {
		_, err := query.Parse(text, now)
		if err == nil {
			t.Errorf("%q was understood", text)
			continue
		}
		if e, ok := errors.AsType[*query.Error](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %T, want %s", text, err, e, want)
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string][]string{
		"":                       {},
		"Your invoice, no. 12/3": {"your", "invoice", "no", "12", "3"},
		"Crème brûlée":           {"creme", "brulee"},
		"Straße ΣΊΣΥΦΟΣ ﬁn":      {"strasse", "σισυφοσ", "fin"},
		"don't":                  {"don", "t"},
		"東京タワー":                  {"東", "京", "タ", "ワ", "ー"},
		"한국어 메일":                 {"한국어", "메일"},
		"a\x00b\xffc":            {"a", "b", "c"},
		"cafe\u0301 noir":        {"cafe", "noir"},
		strings.Repeat("é", 100): {strings.Repeat("e", 64)},
	} {
		got := query.Texts(text)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
		for _, w := range query.Words(text) {
			if w.Start >= w.End || w.End > len(text) || w.Text == "" || len(w.Text) > query.MaxWord {
				t.Errorf("%q: word %+v", text, w)
			}
		}
	}
}

func TestAddressTerms(t *testing.T) {
	for address, want := range map[string][]string{
		"Ann@Example.COM": {"ann@example.com", "ann", "example.com"},
		"":                nil,
		"postmaster":      {"postmaster"},
		`"a@b"@x.test`:    {`"a@b"@x.test`, `"a@b"`, "x.test"},
		"@x":              {"@x"},
		"x@":              {"x@"},
	} {
		if diff := cmp.Diff(want, query.AddressTerms(address)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", address, diff)
		}
	}
}

func TestMarks(t *testing.T) {
	n, err := query.Parse(`invoice -spam subject:"for you" OR due* status:sent`, now)
	if err != nil {
		t.Fatal(err)
	}
	want := []query.Node{
		query.Term{Field: query.Subject, Value: "invoice"}, query.Phrase{Field: query.Subject,
			Words: []string{"for", "you"}},
		query.Prefix{Field: query.Subject, Value: "due"},
	}
	if diff := cmp.Diff(want, query.Marks(n, query.Subject)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// FuzzParse types anything into the search box.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`ann "your invoice" -spam (a1 OR b1) to:example.com before:7d inv*`, `-(-(-x))`, `to:"`, `"\xff`,
		"NOT NOT x", "发票 é* OR", "id:*", "after:2030-01-02T15:04:05Z",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := query.Parse(text, now)
		if err != nil {
			e, ok := errors.AsType[*query.Error](err)
			if !ok || e.At < 1 || e.At > len(text)+1 || e.Message == "" {
				t.Fatalf("%q: %#v", text, err)
			}
			return
		}
		check(t, n)
		query.Marks(n, query.Text)
	})
}

// check holds a tree to what its comments promise.
func check(t *testing.T, n query.Node) {
	t.Helper()
	parts := func(nodes []query.Node) {
		if len(nodes) < 2 {
			t.Fatalf("%T of %d", n, len(nodes))
		}
		for _, part := range nodes {
			check(t, part)
		}
	}
	switch n := n.(type) {
	case query.And:
		parts(n)
	case query.Or:
		parts(n)
	case query.Not:
		check(t, n.Part)
	case query.Term:
		if n.Value == "" {
			t.Fatalf("empty %#v", n)
		}
	case query.Prefix:
		if len(n.Value) < query.MinPrefix {
			t.Fatalf("short %#v", n)
		}
	case query.Phrase:
		if len(n.Words) < 2 {
			t.Fatalf("%#v", n)
		}
	}
}

// TestPastedAddressesFindTheAddress holds that what people paste means the address in it.
func TestPastedAddressesFindTheAddress(t *testing.T) {
	want := func(n query.Node, field query.Field) bool {
		any, _ := n.(query.Or)
		for _, one := range any {
			if one == query.Node(query.Term{Field: field, Value: "ann+news@example.com"}) {
				return true
			}
		}
		return false
	}
	for _, text := range []string{"ann+news@example.com", "<ann+news@example.com>", "ann+news@example.com,",
		"ann+news@example.com;", "Ann+News@example.com.", "mailto:ann+news@example.com",
		"<mailto:ann+news@example.com>",
		"Ann Smith <ann+news@example.com>", `"Smith, Ann" <ann+news@example.com>,`,
		" Ann <ann+news@example.com> "} {
		n, err := query.Parse(text, now)
		if err != nil || !want(n, query.To) || !want(n, query.From) {
			t.Errorf("%s: %v, %v", text, n, err)
		}
	}
}
