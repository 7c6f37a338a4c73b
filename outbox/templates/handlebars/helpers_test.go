package handlebars

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const sample = `{"name":"Ann","nick":"","none":null,"n":3,"one":1,"zero":0,"price":1234.5,"big":12345678901234567890,"t":"7",
	"at":"2024-03-02T15:04:05Z","day":"2024-03-02","unix":1709391845,"list":[1,2,3],"empty":[],"obj":{"b":1,"a":"<"},
	"site":"https://x.test/a?b=1#top","bad":"java\nscript:alert(1)","text":"A long text 👩‍👩‍👧 here","html":"<b>\"x\"</b>"}`

func decode(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestHelpers(t *testing.T) {
	data := decode(t, sample)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		source, want string
		in           Input
	}{
		{source: "{{big}}", want: "12345678901234567890"},
		{source: "{{#equals name 'Ann'}}y{{else}}n{{/equals}}{{#equals t 7}}y{{else}}n{{/equals}}{{#eq n 3}}y{{/eq}}", want: "yny"},
		{source: "{{#notEquals name 'Bob'}}y{{/notEquals}}{{#if (ne n 3)}}n{{else}}y{{/if}}{{#if (eq missing none)}}y{{/if}}", want: "yyy"},
		{source: "{{#greaterThan n 2}}a{{/greaterThan}}{{#if (gt t 6.5)}}b{{/if}}{{#lessThan n 4}}c{{/lessThan}}{{#if (lt 'a' 'b')}}d{{/if}}", want: "abcd"},
		{source: "{{#if (gte n 3)}}a{{/if}}{{#if (lte n 3)}}b{{/if}}{{#if (gt name 1)}}c{{/if}}{{#if (gt missing 0)}}d{{/if}}", want: "ab"},
		{source: "{{#and name n}}a{{/and}}{{#and name nick}}b{{/and}}{{#or nick name}}c{{/or}}{{#not nick}}d{{/not}}{{or nick name}}", want: "acdAnn"},
		{source: "{{#if (and (gt n 1) (or nick (not none)))}}y{{/if}}", want: "y"},
		{source: "{{#unless (eq n 3)}}a{{else}}b{{/unless}}{{#if nick}}{{else eq n 3}}c{{/if}}", want: "bc"},
		{source: "{{insert nick 'default=Customer'}} {{insert name 'default=X'}} {{insert none default='Y'}}",
			want: "Customer Ann Y"},
		{source: "{{default nick none 'x'}} {{default zero 1}} {{default missing n}}", want: "x 0 3"},
		{source: "{{length list}} {{length obj}} {{length name}} {{length empty}} {{length '👩‍👩‍👧'}}",
			want: "3 2 3 0 1"},
		{source: "{{truncate text 7}}|{{truncate text 13 '...'}}|{{truncate text 14 ''}}|{{truncate name 3}}|{{truncate name 2}}", want: "A long…|A long tex...|A long text 👩‍👩‍👧|Ann|A…"},
		{source: "{{truncate name 0}}{{truncate name 1 ''}}", want: "…A"},
		{source: "{{upper name}} {{lower name}} {{upper 'é'}}", want: "ANN ann É"},
		{source: "{{{json obj}}} {{{json list}}} {{{json missing}}}", want: `{"a":"\u003c","b":1} [1,2,3] null`},
		{source: "{{{url site}}} {{{url site c='d e' f=missing g=n}}} {{url bad}} {{{url '/x' y='&'}}}",
			want: "https://x.test/a?b=1#top https://x.test/a?b=1&c=d+e&g=3#top # /x?y=%26"},
		{source: "{{urlencode 'a b/ä&!'}}", want: "a%20b%2F%C3%A4%26!"},
		{source: "{{link site name class='btn'}} {{link bad}}",
			want: `<a href="https://x.test/a?b&#x3D;1#top" class="btn">Ann</a> <a href="#">java` +
				"\nscript:alert(1)</a>"},
		{source: "{{number price}} {{number price decimals=2 locale='de'}} {{number t}} {{number none}}",
			want: "1,234.5 1.234,50 7 "},
		{source: "{{currency price 'EUR'}} {{currency price 'eur' locale='de'}} {{currency price 'JPY'}}",
			want: "€1,234.50 1.234,50\u00a0€ ¥1,235"},
		{source: "{{n}} {{plural n 'item' 'items'}}, {{plural one 'item' 'items'}}; {{plural n 'plik' 'plików' few='pliki' locale='pl'}}", want: "3 items, item; pliki"},
		{source: "{{date at}} {{date at 'full' locale='fr'}} {{date at 'time' tz='America/New_York'}} {{date none}}", want: "Mar 2, 2024 samedi 2 mars 2024 10:04 AM "},
		{source: "{{formatDate at 'YYYY-MM-DD HH:mm ZZ'}} {{formatDate at 'HH:mm' '-0800'}} {{formatDate unix 'dddd' tz='+05:30'}}", want: "2024-03-02 15:04 +0000 07:04 Saturday"},
		{source: "{{date at 'D. MMMM YYYY, H:mm'}} {{date day 'time'}} {{number price}}",
			want: "2. März 2024, 16:04 00:00 1.234,5", in: Input{Locale: "de-DE", Zone: berlin}},
		{source: "{{log 'x'}}{{lookup obj 'b'}}", want: "1"},
	} {
		template, err := Parse(test.source, Options{})
		if err != nil {
			t.Errorf("%q: %v", test.source, err)
			continue
		}
		r, err := template.Execute(t.Context(), data, test.in)
		if err != nil || r.Text != test.want {
			t.Errorf("%q: %q, %v, want %q", test.source, r.Text, err, test.want)
		}
	}
}

// TestNamesOfHelpersAreFree holds that data may use the names of helpers.
func TestNamesOfHelpersAreFree(t *testing.T) {
	template, err := Parse("{{url}} {{date}} {{link}} {{#length}}{{.}}{{/length}} {{upper url}}", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := template.Execute(t.Context(), map[string]any{"url": "u", "date": "d", "link": "l", "length": 3.0},
		Input{})
	if want := "u d l 3 U"; err != nil || r.Text != want {
		t.Errorf("%q, %v, want %q", r.Text, err, want)
	}
}

func TestEscaping(t *testing.T) {
	data := decode(t, `{"x":"<b> & \"q\" 'a' = `+"`"+
		`","lines":"Hi\r\nBcc: all@x.test\u0000\u2028end ","turned":"\u202eevil\u2066 gpj\u2069.exe","n":12,"md":"# *a* [b](c)\n\n    1. d\n- <i>"}`)
	for _, test := range []struct {
		escaping     Escaping
		source, want string
	}{
		{HTML, "{{x}}", "&lt;b&gt; &amp; &quot;q&quot; &#x27;a&#x27; &#x3D; &#x60;"},
		{HTML, "{{{x}}}{{&x}}", "<b> & \"q\" 'a' = `<b> & \"q\" 'a' = `"},
		{Text, "{{x}} {{link 'https://x.test' 'here'}}", "<b> & \"q\" 'a' = ` here (https://x.test)"},
		{Header, "{{lines}}\n more\t{{x}}\n", "Hi Bcc: all@x.test end more <b> & \"q\" 'a' = `"},
		{Header, "\u2068{{turned}}\u2069 {{{turned}}}", "\u2068evil\u2066 gpj\u2069.exe\u2069 evil\u2066 gpj\u2069.exe"},
		{Header, "{{{lines}}}", "Hi Bcc: all@x.test end"},
		{Markdown, "{{md}} {{x}} {{md}} {{n}}.", "QJZX0Z QJZX1Z QJZX0Z 12."},
		{Markdown, "{{link 'https://x.test/>' 'a]b'}}", `<a href="QJZX0Z">QJZX1Z</a>`},
	} {
		template, err := Parse(test.source, Options{Escaping: test.escaping})
		if err != nil {
			t.Fatal(err)
		}
		r, err := template.Execute(t.Context(), data, Input{})
		if err != nil || r.Text != test.want {
			t.Errorf("%d %q:\n%q, %v, want\n%q", test.escaping, test.source, r.Text, err, test.want)
		}
	}
	if _, err := Parse("{{{x}}}", Options{EscapedOnly: true}); err == nil {
		t.Error("values are printed unescaped though that isn't allowed")
	}
}

func TestMissing(t *testing.T) {
	source := "{{name}} {{gone.deep}}\n{{#if nothing}}{{/if}}{{#each nobody}}{{/each}}{{upper lost}}{{gone.deep}}{{none}}{{default x 'd'}}{{> p}}{{insert y}}{{insert z 'default=a'}}"
	template, err := Parse(source, Options{Partials: map[string]string{"p": "\n {{hidden}}"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Missing{
		{Name: "gone.deep", Line: 1, Column: 12}, {Name: "lost", Line: 2, Column: 56},
		{Name: "hidden", Template: "p", Line: 2, Column: 4}, {Name: "y", Line: 2, Column: 116},
	}
	r, err := template.Execute(t.Context(), decode(t, sample), Input{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, r.Missing); diff != "" {
		t.Error(diff)
	}
	strict, err := template.Execute(t.Context(), decode(t, sample), Input{Strict: true})
	if message := "line 1, column 12: missing: gone.deep, lost, hidden, y"; !errors.Is(err, ErrMissing) ||
		err.Error() != message {
		t.Errorf("%v, want %s", err, message)
	}
	if strict.Text != r.Text {
		t.Errorf("strict gives %q, not %q", strict.Text, r.Text)
	}
}

func TestTemplatesAreShared(t *testing.T) {
	template, err := Parse("{{#each l}}{{@index}}{{this}}{{> p}}{{/each}}",
		Options{Partials: map[string]string{"p": "{{.}};"}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	for range 8 {
		go func() {
			r, _ := template.Execute(t.Context(), map[string]any{"l": []any{"a", "b"}}, Input{})
			done <- r.Text
		}()
	}
	for range 8 {
		if got := <-done; got != "0aa;1bb;" {
			t.Errorf("%q", got)
		}
	}
}
