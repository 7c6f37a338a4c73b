package locale

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

// TestAsIntlWritesIt compares with what the Intl of Node.js wrote.
func TestAsIntlWritesIt(t *testing.T) {
	file, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][5]any
	if err := json.Unmarshal(file, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) < 4000 {
		t.Fatalf("only %d rows", len(rows))
	}
	for _, row := range rows {
		tag, want := row[1].(string), row[4].(string)
		l, argument := Find(tag), row[3].(string)
		var got string
		switch row[0] {
		case "date":
			at, err := time.Parse(time.RFC3339, row[2].(string))
			if err != nil {
				t.Fatal(err)
			}
			got = l.Date(at, argument)
		case "number":
			got = l.Number(row[2].(float64), 0, 3)
		case "currency":
			got = l.Currency(row[2].(float64), argument)
		case "plural":
			got = l.Plural(row[2].(float64))
		}
		if got != want {
			t.Errorf("%v: %q, want %q", row[:4], got, want)
		}
	}
}

// TestPluralsOfCLDR48 tries the samples of CLDR 48, fractions too.
func TestPluralsOfCLDR48(t *testing.T) {
	file, err := os.ReadFile("testdata/plurals.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]map[string][]float64
	if err := json.Unmarshal(file, &all); err != nil || len(all) != len(known().locales) {
		t.Fatal(len(all), err)
	}
	for tag, forms := range all {
		for form, numbers := range forms {
			for _, n := range numbers {
				if got := Find(tag).Plural(n); got != form {
					t.Errorf("%s: %g is %s, want %s", tag, n, got, form)
				}
			}
		}
	}
	for _, row := range []struct {
		tag  string
		n    float64
		want string
	}{{"is", 1.5, "other"}, {"is", 0.5, "other"}, {"is", 1.1, "one"}, {"is", 21, "one"}, {"he", 20, "other"},
		{"he", 100, "other"}, {"es", 1e6, "many"}, {"fr", 2e6, "many"}, {"it", 1e6, "many"}, {"pt", 1e6, "many"},
		{"ca", 1e6, "many"}, {"pl", -3, "few"}, {"ru", 1.5, "other"}} {
		if got := Find(row.tag).Plural(row.n); got != row.want {
			t.Errorf("%s: %g is %s, want %s", row.tag, row.n, got, row.want)
		}
	}
}

func TestFind(t *testing.T) {
	for _, test := range []struct{ asked, got string }{
		{"de", "de"}, {"de-LI", "de"}, {"de_AT", "de-AT"}, {"EN-us", "en"}, {"pt-BR", "pt"},
		{"zh-Hant-HK", "zh-TW"}, {"no", "nb"},
		{"", "en"}, {"tlh", "en"}, {"-", "en"}, {"x-y-z-\x00", "en"},
	} {
		if got := Find(test.asked).Tag(); got != test.got {
			t.Errorf("Find(%q) is %s, want %s", test.asked, got, test.got)
		}
	}
}

func TestEndlessTag(t *testing.T) {
	if got := Find(strings.Repeat("-", 1<<20)).Tag(); got != "en" { // which took hours, a dash at a time
		t.Errorf("it is %s", got)
	}
}

func TestFormat(t *testing.T) {
	at := time.Date(2024, 3, 2, 15, 4, 5, 6_000_000, time.FixedZone("", -8*3600))
	for _, test := range []struct{ tag, pattern, want string }{
		{"en", "MM/DD/YYYY", "03/02/2024"},
		{"en", "dddd, MMMM Do, YYYY [at] h:mm A", "Saturday, March 2nd, 2024 at 3:04 PM"},
		{"en", "ddd MMM D HH:mm:ss.SSS ZZ", "Sat Mar 2 15:04:05.006 -0800"},
		{"en", "YY-M-D H:m:s a Z d DDD DDDD", "24-3-2 15:4:5 pm -08:00 6 62 062"},
		{"en", "X x", "1709420645 1709420645006"},
		{"de", "dddd, Do MMMM", "Samstag, 2. März"},
		{"cs", "D. MMMM", "2. března"},
		{"en", "[unclosed", "[unclo5e6"},
	} {
		if got := Find(test.tag).Format(at, test.pattern); got != test.want {
			t.Errorf("%s %q: %q, want %q", test.tag, test.pattern, got, test.want)
		}
	}
}

func TestNumbersOfAllSizes(t *testing.T) {
	en := Find("en")
	for _, test := range []struct {
		n           float64
		least, most int
		want        string
	}{
		{1.005, 2, 2, "1.01"}, {9.995, 2, 2, "10.00"}, {0.5, 0, 0, "1"}, {math.NaN(), 0, 2, "NaN"},
		{math.Inf(-1), 0, 2, "-∞"},
		{1e21, 0, 0, "1,000,000,000,000,000,000,000"}, {1e-9, 0, 3, "0"}, {1.5, 3, 1, "1.500"}, {1, -5, 999, "1"},
	} {
		if got := en.Number(test.n, test.least, test.most); got != test.want {
			t.Errorf("%g with %d to %d decimals: %q, want %q", test.n, test.least, test.most, got, test.want)
		}
	}
	for _, n := range []float64{math.NaN(), math.Inf(1), 1e308, -1e300, 5e-324} {
		if got := en.Plural(n); got == "" {
			t.Errorf("%g has no plural form", n)
		}
	}
}
