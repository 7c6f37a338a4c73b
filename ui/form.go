package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api/fault"
)

// formField is a field of a form. It has the API's name, so that errors find their field.
type formField struct {
	Name, Label string
	// empty: a line of text; number, secret, key (a secret of several lines), lines, date,
	// check, checks (any of Choices), choice, picker (any of Picks), time or moment (in UTC)
	Kind              string
	Hint, Placeholder string
	Choices           []string          // of a choice; an empty one is shown as Placeholder
	Words             map[string]string // texts of the choices that aren't shown as they are
	List              []string          // what a line of text suggests
	Picks             []pick            // of a picker
	Others            []string          // values of a picker that aren't among its picks
	Means             map[string]string // of checks: what each choice means; nil: they need no words
	Most              int               // characters; 0: 256
	Required          bool
	Value             string   // entered value; empty for a secret
	Chosen            []string // of checks
	Wrong             []string // its errors
}

// Length is the largest number of characters.
func (f formField) Length() int { return cmp.Or(f.Most, 256) }

// Word returns the text of a choice.
func (f formField) Word(choice string) string {
	return cmp.Or(f.Words[choice], choice, f.Placeholder)
}

// formGroup is a part of a form with a heading.
type formGroup struct {
	Legend string
	Folded bool // unless a field has a value or an error
	Fields []formField
}

// Open reports whether the group shows its fields.
func (g formGroup) Open() bool {
	for _, f := range g.Fields {
		if f.Value != "" || len(f.Wrong) > 0 {
			return true
		}
	}
	return !g.Folded
}

// form is a form with the entered values and its errors.
type form struct {
	Action, Back string // URLs
	Save         string // text of its button
	Twins        string // API request and command that do the same
	Hidden       map[string]string
	Groups       []formGroup
	Trouble      string // why the form was refused, without the errors of its fields; empty: it wasn't
}

// fill puts values into the fields.
func (f *form) fill(v url.Values) {
	for _, g := range f.Groups {
		for i := range g.Fields {
			if one := &g.Fields[i]; one.Kind != "secret" && one.Kind != "key" {
				one.Value, one.Chosen = v.Get(one.Name), v[one.Name]
			}
		}
	}
}

// refuse fills in the typed values, adds errors to their fields, and returns the status of the response. A
// nil error refuses nothing. It returns errors that aren't refusals.
func (f *form) refuse(r *http.Request, typed url.Values, refused error) (status int, _ error) {
	f.fill(typed)
	status, words, err := formTrouble(r, refused)
	if err != nil || refused == nil {
		return status, err
	}
	rest, all := *wordsOf(refused), wordsOf(refused).Fields
	rest.Fields = nil
	for _, wrong := range all {
		if !f.blame(wrong) {
			rest.Fields = append(rest.Fields, wrong)
		}
	}
	switch placed := len(all) - len(rest.Fields); {
	case placed == 0:
		f.Trouble = words
	case len(rest.Fields) == 0:
		f.Trouble = "Nothing was saved: " + plural(placed, "field is wrong.", "fields are wrong.")
	default:
		f.Trouble = sentence(&rest)
	}
	return status, nil
}

// blame adds an error to its field, and reports whether it found one: a field of the same name, of which the
// error names a part, or which is the first part of the named object.
func (f *form) blame(wrong fault.Field) bool {
	for _, g := range f.Groups {
		for i := range g.Fields {
			name := g.Fields[i].Name
			rest, is := strings.CutPrefix(wrong.Key, name)
			if is && (rest == "" || rest[0] == '.' || rest[0] == '[') || strings.HasPrefix(name, wrong.Key+".") {
				g.Fields[i].Wrong = append(g.Fields[i].Wrong, wrong.Message)
				return true
			}
		}
	}
	return false
}

// formReader reads the fields of a form, and collects the errors.
type formReader struct {
	url.Values
	wrong fault.Fields
}

func (r *formReader) text(name string) string {
	return strings.TrimSpace(strings.ReplaceAll(r.Get(name), "\r\n", "\n"))
}

func (r *formReader) on(name string) bool { return r.Get(name) != "" }

// secret returns the typed secret, else the old one.
func (r *formReader) secret(name, old string) string { return cmp.Or(r.Get(name), old) }

// whole returns a whole number; 0: the field is empty.
func (r *formReader) whole(name string) int {
	text := r.text(name)
	n, err := strconv.Atoi(text)
	if text != "" && err != nil {
		r.wrong.Add(name, "must be a whole number")
	}
	return n
}

// number returns a number; 0: the field is empty.
func (r *formReader) number(name string) float64 {
	text := r.text(name)
	n, err := strconv.ParseFloat(text, 64)
	if text != "" && err != nil {
		r.wrong.Add(name, "must be a number")
	}
	return n
}

// day returns the end of a day; nil: the field is empty.
func (r *formReader) day(name string) *time.Time {
	text := r.text(name)
	if text == "" {
		return nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		r.wrong.Add(name, "must be a date like 2026-12-31")
	}
	return new(at.AddDate(0, 0, 1))
}

// Has reports whether a choice is ticked.
func (f formField) Has(choice string) bool { return slices.Contains(f.Chosen, choice) }

// setNumber writes a number into a form, unless it is 0.
func setNumber(f url.Values, name string, n float64) {
	if n != 0 {
		f.Set(name, strconv.FormatFloat(n, 'f', -1, 64))
	}
}

// setOn ticks a box of a form.
func setOn(f url.Values, name string, on bool) {
	if on {
		f.Set(name, "on")
	}
}

// none returns nil for a zero value: a part of a record without any entered value.
func none[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func limitFields() []formField {
	return []formField{
		{Name: "limits.perSecond", Label: "Recipients per second", Kind: "number"},
		{Name: "limits.perMinute", Label: "Recipients per minute", Kind: "number"},
		{Name: "limits.perDay", Label: "Recipients per day", Kind: "number"},
		{Name: "limits.burst", Label: "Burst after a pause", Kind: "number"},
		{Name: "limits.connections", Label: "Simultaneous connections", Kind: "number"},
		{Name: "limits.perConnection", Label: "Messages per connection", Kind: "number", Placeholder: "100",
			Hint: "Leave a limit empty for none, or for the limit of the preset."},
	}
}
