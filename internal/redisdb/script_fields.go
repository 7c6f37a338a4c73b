package redisdb

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// declarations are the names that the comments of a script declare.
type declarations struct {
	args    []string
	rest    string // arguments after the named ones; empty if there are none
	words   []string
	answers map[string][]string // by word
	row     []string
}

// positional matches the use of an argument by its number.
var positional = regexp.MustCompile(`ARGV\[ *[0-9]`)

// declared reads the declarations of a source. Lines of one kind, and of one word, continue each other.
func declared(source string, before *prelude) (*declarations, error) {
	d := &declarations{answers: map[string][]string{}}
	for line := range strings.Lines(source) {
		kind, list, _ := strings.Cut(line, ": ")
		names := strings.Fields(list)
		if len(names) == 0 {
			continue
		}
		switch kind {
		case "-- ARGV":
			if d.rest != "" {
				return nil, fmt.Errorf("the argument %s... is not the last one", d.rest)
			}
			last := len(names) - 1
			if rest, ok := strings.CutSuffix(names[last], "..."); ok {
				names, d.rest = names[:last], rest
			}
			d.args = append(d.args, names...)
		case "-- Answer":
			word := names[0]
			if !slices.Contains(d.words, word) {
				d.words = append(d.words, word)
			}
			d.answers[word] = append(d.answers[word], names[1:]...)
		case "-- Rows":
			d.row = append(d.row, names...)
		}
	}
	return d, d.check(source, before)
}

// check reports names that stand for two things, or for nothing.
func (d *declarations) check(source string, before *prelude) error {
	if at := positional.FindString(source); at != "" {
		return fmt.Errorf("%s…] has no name", at)
	}
	args := slices.Clone(d.args)
	if d.rest != "" {
		args = append(args, d.rest)
	}
	used := words(source)
	for i, name := range args {
		switch {
		case !used[name]:
			return fmt.Errorf("the argument %s is not used", name)
		case slices.Contains(args[:i], name):
			return fmt.Errorf("the argument %s is declared twice", name)
		}
	}
	for _, name := range args {
		if before.names[name] {
			return fmt.Errorf("the argument %s has the name of something in the prelude", name)
		}
	}
	for _, word := range d.words {
		if !used[word] {
			return fmt.Errorf("the answer %s is never given", word)
		}
	}
	for _, name := range slices.Concat(slices.Collect(d.fields())...) {
		if !used[name] && !slices.Contains(args, name) {
			return fmt.Errorf("the answer %s is not a variable", name)
		}
	}
	return nil
}

// fields returns the names of each answer and of the rows.
func (d *declarations) fields() func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for _, word := range d.words {
			if !yield(d.answers[word]) {
				return
			}
		}
		yield(d.row)
	}
}

// expand puts the arguments into variables, and writes the answers out where they are given.
func (d *declarations) expand(source string) string {
	given := map[string]string{}
	for _, word := range d.words {
		given[word] = "{" + strings.Join(append([]string{"'" + word + "'"}, d.answers[word]...), ", ") + "}"
	}
	if d.row != nil {
		given["ROW"] = "{" + strings.Join(d.row, ", ") + "}"
	}
	words := slices.Collect(maps.Keys(given))
	var out strings.Builder
	var values []string
	for i := range d.args {
		values = append(values, fmt.Sprintf("ARGV[%d]", i+1))
	}
	if len(values) > 0 {
		fmt.Fprintf(&out, "local %s = %s\n", strings.Join(d.args, ", "), strings.Join(values, ", "))
	}
	if d.rest != "" {
		fmt.Fprintf(&out, "local %s = %d\n", d.rest, len(d.args)+1)
	}
	for line := range strings.Lines(source) {
		gives := func(word string) bool { return strings.Contains(line, word) } // the expression is slow
		if !strings.HasPrefix(line, "--") && slices.ContainsFunc(words, gives) {
			line = capitals.ReplaceAllStringFunc(line, func(word string) string { return cmp.Or(given[word], word) })
		}
		out.WriteString(line)
	}
	return out.String()
}

// capitals matches a word that may be an answer, with the quotes where it is a text.
var capitals = regexp.MustCompile(`'?\b[A-Z][A-Z_]*\b'?`)

// field is one field of a struct that is exchanged with a script.
type field struct {
	index    int
	omitzero bool
}

// fieldsOf returns the fields of a struct by their names in Lua.
func fieldsOf(t reflect.Type) map[string]field {
	fields := make(map[string]field, t.NumField())
	for i := range t.NumField() {
		name, option, _ := strings.Cut(t.Field(i).Tag.Get("lua"), ",")
		if name == "" {
			name = snake(t.Field(i).Name)
		}
		fields[name] = field{index: i, omitzero: option == "omitzero"}
	}
	return fields
}

// snake returns a name of Go as Lua writes it: KeepFor is keep_for, ID is id.
func snake(name string) string {
	var out strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && unicode.IsLower(rune(name[i-1])) {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// take returns the positions of the named fields, and removes them from fields.
func take(fields, left map[string]field, names []string) ([]field, error) {
	taken := make([]field, len(names))
	for i, name := range names {
		f, ok := fields[name]
		if !ok {
			return nil, fmt.Errorf("no field for %s", name)
		}
		taken[i] = f
		delete(left, name)
	}
	return taken, nil
}

// unknown returns an error if a field has no name in the script.
func unknown(left map[string]field) error {
	for name := range left {
		return fmt.Errorf("the script does not declare %s", name)
	}
	return nil
}

// arguments says where the arguments of a script stand in their struct.
type arguments struct {
	named []field
	rest  *field
	slice bool // there is no struct, only the rest
}

func argumentsOf(t reflect.Type, d *declarations) (a arguments, err error) {
	if t.Kind() == reflect.Slice {
		if len(d.args) > 0 || d.rest == "" {
			return a, fmt.Errorf("%v is a slice: declare one argument with dots", t)
		}
		return arguments{slice: true}, nil
	}
	fields := fieldsOf(t)
	left := fieldsOf(t)
	if a.named, err = take(fields, left, d.args); err != nil {
		return a, err
	}
	if d.rest != "" {
		rest, err := take(fields, left, []string{d.rest})
		if err != nil {
			return a, err
		}
		a.rest = &rest[0]
	}
	return a, unknown(left)
}

// list returns the arguments in the order of the script.
func (a arguments) list(args any) []any {
	v := reflect.ValueOf(args)
	if a.slice {
		return appendAll(nil, v)
	}
	out := make([]any, len(a.named), len(a.named)+4)
	for i, f := range a.named {
		out[i] = argument(v.Field(f.index), f.omitzero)
	}
	if a.rest != nil {
		out = appendAll(out, v.Field(a.rest.index))
	}
	return out
}

func appendAll(out []any, v reflect.Value) []any {
	for i := range v.Len() {
		out = append(out, argument(v.Index(i), false))
	}
	return out
}

// argument returns a value as the client sends it.
func argument(v reflect.Value, omitzero bool) any {
	if omitzero && v.IsZero() {
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Bool:
		if v.Bool() {
			return "1"
		}
		return ""
	}
	if t, ok := v.Interface().(time.Time); ok {
		return Millis(t)
	}
	return v.Interface()
}

// answers says where the values of a reply belong.
type answers struct {
	words map[string][]field // if it is a struct with the field Word
	word  field
	row   []field // if it is a slice of structs
}

func answersOf(t reflect.Type, d *declarations) (a answers, err error) {
	switch {
	case d.row != nil:
		if t.Kind() != reflect.Slice || t.Elem().Kind() != reflect.Struct || d.words != nil {
			return a, fmt.Errorf("it returns rows, but %v isn't a slice of structs", t)
		}
		left := fieldsOf(t.Elem())
		if a.row, err = take(fieldsOf(t.Elem()), left, d.row); err == nil {
			err = unknown(left)
		}
		return a, err
	case d.words == nil:
		if t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() {
			return a, fmt.Errorf("it declares no answer, and %v is a struct", t)
		}
		return a, nil
	case t.Kind() != reflect.Struct:
		return a, fmt.Errorf("it declares results, but %v isn't a struct", t)
	}
	fields, left := fieldsOf(t), fieldsOf(t)
	word, err := take(fields, left, []string{"word"})
	if err != nil {
		return a, err
	}
	a.word, a.words = word[0], make(map[string][]field, len(d.words))
	for _, name := range d.words {
		if a.words[name], err = take(fields, left, d.answers[name]); err != nil {
			return a, err
		}
	}
	return a, unknown(left)
}

// decode stores a reply in a value.
func (a answers) decode(v reflect.Value, reply any) error {
	switch {
	case a.words != nil:
		list, ok := reply.([]any)
		if !ok || len(list) == 0 {
			return fmt.Errorf("answers %v", reply)
		}
		word, _ := list[0].(string)
		fields, ok := a.words[word]
		if !ok {
			return fmt.Errorf("answers %v", list[0])
		}
		v.Field(a.word.index).SetString(word)
		return fill(v, fields, list[1:])
	case a.row != nil:
		list, ok := reply.([]any)
		if !ok {
			return fmt.Errorf("answers %v instead of rows", reply)
		}
		v.Set(reflect.MakeSlice(v.Type(), len(list), len(list)))
		for i, row := range list {
			values, _ := row.([]any)
			if err := fill(v.Index(i), a.row, values); err != nil {
				return err
			}
		}
		return nil
	}
	return store(v, reply)
}

// fill stores values in the fields of a struct.
func fill(v reflect.Value, fields []field, values []any) error {
	if len(values) != len(fields) {
		return fmt.Errorf("answers %d values instead of %d: one of them was nil", len(values), len(fields))
	}
	for i, f := range fields {
		if err := store(v.Field(f.index), values[i]); err != nil {
			return err
		}
	}
	return nil
}

// store stores one value of a reply: a text, a number or a list.
func store(v reflect.Value, value any) error {
	if v.Kind() == reflect.Interface && value != nil {
		v.Set(reflect.ValueOf(value))
		return nil
	}
	switch value := value.(type) {
	case string:
		return storeText(v, value)
	case int64:
		return storeText(v, strconv.FormatInt(value, 10))
	case []any:
		if v.Kind() != reflect.Slice {
			break
		}
		v.Set(reflect.MakeSlice(v.Type(), len(value), len(value)))
		for i, one := range value {
			if err := store(v.Index(i), one); err != nil {
				return err
			}
		}
		return nil
	case nil:
		return nil
	}
	return fmt.Errorf("answers %v, which is no %v", value, v.Type())
}

// storeText stores a text of a reply. An empty one leaves the zero value.
func storeText(v reflect.Value, text string) error {
	if text == "" {
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
		return nil
	case reflect.Bool:
		v.SetBool(text == "1")
		return nil
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		v.SetInt(n)
		return err
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(text))
			return nil
		}
	}
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(ParseTime(text)))
		return nil
	}
	return fmt.Errorf("answers %q, which is no %v", text, v.Type())
}
