package mail

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/outbox/templates/locale"
)

// read returns the params of a digest as templates see them.
func read(t *testing.T, d Digest, locale string, zone *time.Location) digest {
	t.Helper()
	raw, err := Params(d, locale, zone)
	if err != nil {
		t.Fatal(err)
	}
	var params struct{ Digest digest }
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&params); err != nil {
		t.Fatal(err)
	}
	return params.Digest
}

// checkLines holds that each group is on exactly one line of a text, with its title, its actors and its
// count, and that no other line is about a group.
func checkLines(t *testing.T, d Digest, locale string, zone *time.Location, text string) {
	t.Helper()
	p := read(t, d, locale, zone)
	var want []string
	for i, g := range p.Groups {
		for _, part := range append([]string{g.Title}, names(g.Actors)...) {
			if !strings.Contains(g.Line, part) {
				t.Errorf("the line of group %d lacks %q: %q", i, part, g.Line)
			}
		}
		if (g.Count > 1 || !p.Single) && !strings.Contains(g.Line, g.Updates) {
			t.Errorf("the line of group %d lacks its count: %q", i, g.Line)
		}
		if p.Single {
			want = append(want, g.Line)
		} else {
			want = append(want, "- "+g.Line)
		}
	}
	if !p.Single {
		want = slices.Concat([]string{p.Heading, p.Span}, want)
	}
	if p.Rest.Line != "" {
		want = append(want, strings.TrimSuffix(p.Rest.Line+" <"+p.FeedURL+">", " <>"))
	} else if p.FeedURL != "" {
		want = append(want, p.Words.All+" <"+p.FeedURL+">")
	}
	want = append(want, p.Words.Zone)
	var got []string
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && !strings.Contains(line, " <https://mail.example.com/") {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the text has the lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestEachGroupIsOnOneLine looks for the titles themselves, which here are such that none is part of another.
func TestEachGroupIsOnOneLine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		d := week(1 + r.IntN(50))
		if n%3 == 0 {
			d.Rest, d.FeedURL = Rest{}, ""
		}
		for i := range d.Groups {
			d.Groups[i].Title = fmt.Sprintf("Title %04d\n%s", i, strings.Repeat("long ", r.IntN(100)))
		}
		locale := []string{"en", "de", "fr"}[n%3]
		mail := filled(t, d, locale, time.UTC, "https://mail.example.com")
		checkLines(t, d, locale, time.UTC, mail.Text)
		for i := range d.Groups {
			if found := strings.Count(mail.Text, fmt.Sprintf("Title %04d", i)); found != 1 {
				t.Fatalf("group %d is %d times in\n%s", i, found, mail.Text)
			}
		}
	}
}

func TestSubject(t *testing.T) {
	ann := func(d Digest) Digest { d.Groups[0].Title = "Ann Miller commented on Budget 2027"; return d }
	two := several()
	two.Groups, two.Total = append(two.Groups, week(1).Groups...), 6
	system := several()
	system.Groups[0].Actors, system.Groups[0].Others = nil, 0
	unnamed := several()
	unnamed.Groups[0].Actors = []Actor{{ID: "u1"}, {ID: "u2"}}
	untitled := one()
	untitled.Groups[0].Title = " \n"
	long := one()
	long.Groups[0].Title = strings.Repeat("word ", 99)
	family := one()
	family.Groups[0].Title = strings.Repeat("👩‍👩‍👧‍👧", 40)
	named := two
	named.Groups = slices.Clone(two.Groups)
	named.Groups[0].Actors = []Actor{{Name: strings.Repeat("Ann", 99)}, {Name: strings.Repeat("Bo", 99)}}
	named.Groups[0].Others, named.Groups[0].Title = 0, long.Groups[0].Title
	thousands := week(2)
	thousands.Total = 12345
	for name, c := range map[string]struct {
		digest       Digest
		locale, want string
	}{
		"one event":              {one(), "en", "Ann Miller: Budget 2027"},
		"a sentence":             {ann(one()), "en", "Ann Miller commented on Budget 2027"},
		"a sentence of several":  {ann(several()), "en", "Ann Miller commented on Budget 2027, and 4 more"},
		"one group":              {several(), "en", "Ann Miller and 4 others: Budget 2027 (5 updates)"},
		"two groups":             {two, "en", "Ann Miller and 4 others: Budget 2027, and 1 more"},
		"two groups in French":   {two, "fr", "Ann Miller et 4 autres\u00a0: Budget 2027, et 1 autre"},
		"two groups in German":   {two, "de", "Ann Miller und 4 weitere: Budget 2027 und 1 weitere"},
		"another language":       {two, "pt-BR", "Ann Miller and 4 others: Budget 2027, and 1 more"},
		"no actors":              {system, "en", "Budget 2027 (5 updates)"},
		"actors without a name":  {unnamed, "en", "4 people: Budget 2027 (5 updates)"},
		"no title":               {untitled, "en", "Ann Miller: report 7"},
		"a long title":           {long, "en", "Ann Miller: " + strings.Repeat("word ", 27) + "wo…"},
		"a title of a few signs": {family, "en", "Ann Miller: " + strings.Repeat("👩‍👩‍👧‍👧", 19) + "…"},
		"long names": {named, "en", strings.Repeat("Ann", 13) + "… and " + strings.Repeat("Bo", 19) + "B…: " +
			strings.Repeat("word ", 9) + "word…, and 1 more"},
		"thousands": {thousands, "en", "Report 1 of the planning group, and 12,344 more"},
		"nothing":   {Digest{Schedule: "weekly@mon"}, "en", "Your weekly summary"},
	} {
		t.Run(name, func(t *testing.T) {
			got := read(t, c.digest, c.locale, nil).Subject
			if got != c.want || utf8.RuneCountInString(got) > maxSubject {
				t.Errorf("%d characters: %q, want %q", utf8.RuneCountInString(got), got, c.want)
			}
		})
	}
}

func TestPeople(t *testing.T) {
	for _, c := range []struct {
		names        []string
		others       int
		locale, want string
	}{
		{nil, 0, "en", ""},
		{[]string{"Ann"}, 0, "en", "Ann"},
		{[]string{"Ann"}, 1, "en", "Ann and 1 other"},
		{[]string{"Ann", "Bo"}, 0, "en", "Ann and Bo"},
		{[]string{"Ann", "Bo"}, 3, "en", "Ann, Bo and 3 others"},
		{[]string{"Ann", "Bo", "Cy"}, 1200, "de", "Ann, Bo, Cy und 1.200 weitere"},
		{[]string{"Ann", "Bo"}, 1, "de", "Ann, Bo und 1 weitere Person"},
		{[]string{"Ann", "", "Bo"}, 1, "fr", "Ann, Bo et 2 autres"},
		{[]string{""}, 0, "fr", "1 personne"},
		{[]string{"{b}", "{n} and {a}"}, 2, "en", "{b}, {n} and {a} and 2 others"},
	} {
		w, err := newWriter(Digest{}, c.locale, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.people(c.names, c.others); got != c.want {
			t.Errorf("%q and %d: %q, want %q", c.names, c.others, got, c.want)
		}
	}
}

func TestRestIsExact(t *testing.T) {
	for _, c := range []struct {
		rest         Rest
		locale, want string
	}{
		{Rest{5, 12}, "en", "… and 12 more in 5 groups"},
		{Rest{1, 1}, "en", "… and 1 more in 1 group"},
		{Rest{1000, 12345}, "en", "… and 12,345 more in 1,000 groups"},
		{Rest{1, 3}, "de", "… und 3 weitere in 1 Gruppe"},
		{Rest{1, 1}, "fr", "… et 1 autre dans 1 groupe"},
		{Rest{2, 1000000}, "fr", "… et 1\u202f000\u202f000 autres dans 2 groupes"},
		{Rest{}, "en", ""},
	} {
		if got := read(t, Digest{Rest: c.rest}, c.locale, nil).Rest.Line; got != c.want {
			t.Errorf("%+v: %q, want %q", c.rest, got, c.want)
		}
	}
}

func TestOnlyWebLinks(t *testing.T) {
	for url, ok := range map[string]bool{
		"https://x.test/a?b=c&d=%20#e": true, "http://x.test": true, "HTTPS://X.test/": true, "": false,
		"javascript:alert(1)": false, " https://x.test": false, "java\nscript:alert(1)": false, "//x.test": false,
		"data:text/html,x": false, "https://x.test/>": false, "https://x.test/\u202ea": false, "https:": false,
		"mailto:a@x.test": false, "https://x.test/" + strings.Repeat("a", maxURL): false, "/reports": false,
	} {
		d := one()
		d.Groups[0].URL, d.Groups[0].Actors[0].URL, d.FeedURL = url, url, url
		p, want := read(t, d, "en", nil), ""
		if ok {
			want = url
		}
		if p.Groups[0].URL != want || p.Groups[0].Actors[0].URL != want || p.FeedURL != want {
			t.Errorf("%q became %q, %q and %q", url, p.Groups[0].URL, p.Groups[0].Actors[0].URL, p.FeedURL)
		}
	}
}

// TestSameBytes: the sources are the same for everybody, and a repetition fills them with the same params.
func TestSameBytes(t *testing.T) {
	zone := time.FixedZone("", 3600)
	first, err := Write(week(20), "de", zone)
	if err != nil {
		t.Fatal(err)
	}
	moved := week(20)
	for i := range moved.Groups {
		moved.Groups[i].Last = moved.Groups[i].Last.In(zone)
	}
	again, err := Write(moved, "de", zone)
	if err != nil || !reflect.DeepEqual(first, again) {
		t.Errorf("the same digest gives another mail, %v", err)
	}
	other, err := Write(hostile(), "ar", nil)
	if err != nil {
		t.Fatal(err)
	}
	if first.Params, other.Params = nil, nil; !reflect.DeepEqual(first, other) {
		t.Error("the sources of two mails differ")
	}
}

func TestParamsAreComplete(t *testing.T) {
	raw, err := Params(Digest{Groups: []Group{{Category: "comments"}}}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	var p map[string]map[string]any
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	of := func(m map[string]any) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }
	if got, want := of(p["digest"]), "dir feedUrl from groups heading lang period preview rest schedule "+
		"single span subject to total words"; got != want {
		t.Errorf("the digest has %s, want %s", got, want)
	}
	group := p["digest"]["groups"].([]any)[0].(map[string]any)
	if got, want := of(group), "actors category count entityId entityType first kind last line others payload "+
		"priority title updates url when who"; got != want {
		t.Errorf("a group has %s, want %s", got, want)
	}
	if group["kind"] != "comments" || group["priority"] != "normal" ||
		!reflect.DeepEqual(group["payload"], map[string]any{}) || !reflect.DeepEqual(group["actors"], []any{}) {
		t.Errorf("%v", group)
	}
	_, err = Params(Digest{Groups: []Group{{}, {Category: "comments", Payload: json.RawMessage("{")}}}, "", nil)
	if err == nil || !strings.Contains(err.Error(), "payload of group 2 (comments)") {
		t.Errorf("%v", err)
	}
}

func TestDirection(t *testing.T) {
	for tag, want := range map[string]string{
		"ar": "rtl", "he-IL": "rtl", "iw": "rtl", "fa": "rtl", "ur_PK": "rtl", "yi": "rtl", "az-Arab": "rtl",
		"ckb": "rtl", "dv": "rtl",
		"en": "ltr", "": "ltr", "de-AT": "ltr", "az": "ltr", "x-y-\x00": "ltr", strings.Repeat("ar-", 99): "ltr",
	} {
		if got := read(t, one(), tag, nil).Dir; got != want {
			t.Errorf("%q is %s, want %s", tag, got, want)
		}
	}
}

// TestAllWordsAreThere checks the texts of each language, with the plural forms that it has.
func TestAllWordsAreThere(t *testing.T) {
	all, err := known()
	if err != nil || len(all) != 3 {
		t.Fatalf("%d languages, %v", len(all), err)
	}
	place := regexp.MustCompile(`{[a-z]+}`)
	places := func(s string) []string { return place.FindAllString(s, -1) }
	for name, w := range all {
		if locale.Find(name).Tag() != name {
			t.Errorf("%s: outbox/templates/locale does not know it", name)
		}
		v, english := reflect.ValueOf(*w), reflect.ValueOf(*all["en"])
		for i := range v.NumField() {
			field := v.Type().Field(i).Name
			switch value := v.Field(i).Interface().(type) {
			case string:
				if value == "" || !slices.Equal(places(value), places(english.Field(i).String())) {
					t.Errorf("%s: %s is %q", name, field, value)
				}
			case map[string]string:
				if got := slices.Sorted(maps.Keys(value)); !slices.Equal(got,
					[]string{"daily", "hourly", "monthly", "weekly"}) {
					t.Errorf("%s: %s has %v", name, field, got)
				}
			case forms:
				want := places(english.Field(i).Interface().(forms)["other"])
				for form, pattern := range value {
					if !slices.Equal(places(pattern), want) {
						t.Errorf("%s: %s %s is %q", name, field, form, pattern)
					}
				}
				if value["other"] == "" {
					t.Errorf("%s: %s has no form for other numbers", name, field)
				}
			case shownWords:
				for j := range v.Field(i).NumField() {
					if v.Field(i).Field(j).String() == "" {
						t.Errorf("%s: a word that is shown is missing: %+v", name, value)
					}
				}
			}
		}
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		" a\r\n\tb  c ": "a b c", "a\u2028b\u0085c": "a b c", "\u202eevil\u2069": "evil", "a\xffb": "a\ufffdb",
		"\u00a0a\u00a0b": "a\u00a0b", "\x00\ufeff": "", "سارة\u200f!": "سارة\u200f!",
	} {
		if got := clean(in); got != want || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	d := week(50)
	for b.Loop() {
		if _, err := Write(d, "de", time.UTC); err != nil {
			b.Fatal(err)
		}
	}
}
