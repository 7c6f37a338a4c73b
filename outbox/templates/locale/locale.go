package locale

import (
	_ "embed" // each language's texts
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/text/language"
)

// Locale is the formats of a language, perhaps of a region. The zero value is invalid; use Find.
type Locale struct {
	tag   language.Tag
	words *words
}

// words are a language's entry in locales.json.
type words struct {
	Months      []string
	MonthsShort []string
	Days        []string // from Sunday
	DaysShort   []string
	Halves      []string          // AM, PM
	Styles      map[string]string // patterns of dates: short, medium, long, full
	Time        string            // pattern
	Decimal     string            // the sign before fractions
	Group       string            // the sign between thousands
	Minus       string
	MinGrouped  int               // digits from which thousands are grouped
	Lakh        bool              // grouped in twos after the first three: 12,34,567
	Plurals     map[string]string // rules of the forms, as CLDR writes them; without "other"
	Money       struct {
		Symbols  map[string]string // for currencies whose symbol isn't their code
		Positive string            // ¤ for the symbol, # for the amount
		Negative string            // with the minus
		Decimal  string
		Group    string
	}
}

//go:embed locales.json
var file []byte

// table is the content of the file, loaded at the first use. A test checks that it can be read.
type table struct {
	digits  map[string]int // decimals of currencies that do not have two
	locales map[string]Locale
}

var known = sync.OnceValue(func() table {
	var f struct {
		Digits  map[string]int
		Locales map[string]*words
	}
	t := table{locales: map[string]Locale{}}
	if json.Unmarshal(file, &f) != nil {
		return t
	}
	t.digits = f.Digits
	for name, w := range f.Locales {
		t.locales[strings.ToLower(name)] = Locale{tag: language.Make(name), words: w}
	}
	return t
})

// maxTag is longer than any valid tag; tags may come from untrusted data.
const maxTag = 64

// Find returns the locale of a tag such as "de", "pt-BR" or "en_GB". An unknown region gives its language, an
// unknown language English.
func Find(tag string) Locale {
	locales := known().locales
	if len(tag) > maxTag {
		return locales["en"]
	}
	name := strings.ToLower(strings.ReplaceAll(tag, "_", "-"))
	if other, ok := aliases[name]; ok {
		name = other
	}
	for name != "" {
		if l, ok := locales[name]; ok {
			return l
		}
		name = name[:max(0, strings.LastIndexByte(name, '-'))]
		if other, ok := aliases[name]; ok {
			name = other
		}
	}
	return locales["en"]
}

// aliases map unknown tags to known ones.
var aliases = map[string]string{
	"no": "nb", "nn": "nb", "iw": "he", "in": "id", "zh-hant": "zh-tw", "zh-hk": "zh-tw", "zh-mo": "zh-tw",
	"es-us": "es-mx",
}

// Tag returns the tag of the locale, which may be shorter than the requested one.
func (l Locale) Tag() string { return l.tag.String() }

// Plural returns the form that a number takes in this language: "zero", "one", "two", "few", "many" or
// "other".
func (l Locale) Plural(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return "other"
	}
	whole, fraction, _ := strings.Cut(rounded(n, 3), ".")
	fraction = strings.TrimRight(fraction, "0")
	i, v, f := digits(whole), len(fraction), digits(fraction)
	operands := map[string]int{"n": i, "i": i, "v": v, "w": v, "f": f, "t": f}
	if v > 0 {
		operands["n"] = -1 // no whole number
	}
	for _, form := range []string{"zero", "one", "two", "few", "many"} {
		if rule := l.words.Plurals[form]; rule != "" && holds(rule, operands) {
			return form
		}
	}
	return "other"
}

// holds reports whether a rule of CLDR holds, such as "i % 10 = 2..4 and v = 0 or n = 0" (UTS #35 part 3,
// section 5.1).
func holds(rule string, operands map[string]int) bool {
	for either := range strings.SplitSeq(rule, " or ") {
		all := true
		for relation := range strings.SplitSeq(either, " and ") {
			all = all && relates(relation, operands)
		}
		if all {
			return true
		}
	}
	return false
}

// relates evaluates one relation, such as "i % 100 != 11..14,20".
func relates(relation string, operands map[string]int) bool {
	left, values, _ := strings.Cut(relation, "= ")
	left, not := strings.CutSuffix(left, "!")
	name, modulo, _ := strings.Cut(strings.TrimSpace(left), " % ")
	operand, in := operands[name], false
	if m, err := strconv.Atoi(modulo); err == nil && operand >= 0 {
		operand %= m
	}
	for value := range strings.SplitSeq(values, ",") {
		from, to, isRange := strings.Cut(value, "..")
		low, _ := strconv.Atoi(from)
		high := low
		if isRange {
			high, _ = strconv.Atoi(to)
		}
		in = in || low <= operand && operand <= high
	}
	return in != not
}

// digits parses the last digits of a whole number, which decide its plural form. Large numbers stay large.
func digits(s string) int {
	n := 0
	for _, c := range strings.TrimPrefix(s, "-") {
		if n = n*10 + int(c-'0'); n >= 1e9 {
			n = 1e8 + n%1e8
		}
	}
	return n
}
