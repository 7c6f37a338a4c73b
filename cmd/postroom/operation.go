package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

const operationHelp = `A part of an object is a flag, too: --smtp.host. Parts of lists are JSON. Examples:
  postroom api getMessage 01M7YVP1FVRV07ANMBGSMR0100
  postroom api listOutbox --state delayed --pageSize 5
  postroom api createList --name News --welcome.subject Welcome --welcome.text 'Hello!'
  postroom api updateList news --body @news.json
  postroom api importSuppressions --list news --file suppressions.csv`

// operationVerbs are the operations of the API. Only those that a command line names have their flags: to
// learn the flags of all takes a second.
func operationVerbs(args []string) (verbs []verb) {
	for _, o := range api.Operations() {
		v := verb{name: o.ID, help: o.Summary + ".", run: &struct{}{}, group: o.Group}
		if slices.Contains(args, o.ID) {
			v.run, v.more = newOperation(o), o.Method+" "+o.Path
		}
		verbs = append(verbs, v)
	}
	return verbs
}

// operationCmd calls an operation of the API and prints the answer.
type operationCmd struct {
	Given any `embed:""` // a pointer to a struct, which has a field for each of the words

	of    api.Operation
	words []operationWord
}

// operationWord is an argument or a flag.
type operationWord struct {
	name string   // of the flag; empty: an argument
	path []string // of a field: its name, below those of the objects it is in
	json bool     // the flag holds JSON
}

func newOperation(o api.Operation) *operationCmd {
	c := &operationCmd{of: o}
	var fields []reflect.StructField
	add := func(w operationWord, t reflect.Type, tag string, args ...any) {
		c.words = append(c.words, w)
		fields = append(fields, reflect.StructField{Name: "F" + strconv.Itoa(len(fields)), Type: t,
			Tag: reflect.StructTag(fmt.Sprintf(tag, args...))})
	}
	text := reflect.TypeFor[string]()
	for _, name := range o.Params() {
		add(operationWord{}, text, `arg:"" name:%q help:%q`, name, "What stands at "+name+" in the path.")
	}
	if o.In != nil {
		c.addFields(o.In, nil, add)
	}
	switch {
	case o.Media != "":
		add(operationWord{name: "file"}, text,
			`name:"file" required:"" placeholder:"FILE" help:"File to send; - is standard input."`)
		add(operationWord{name: "media"}, text,
			`name:"media" default:%q placeholder:"TYPE" help:"Media type of the file. Default: ${default}."`, o.Media)
	case o.In != nil && !o.AsQuery:
		add(operationWord{name: "body", json: true}, text, `name:"body" placeholder:"JSON" `+
			`help:"The whole body, a file of it after @, or - for standard input. Other flags change it."`)
	}
	if c.asks() {
		add(operationWord{name: "yes"}, reflect.TypeFor[bool](), `name:"yes" short:"y" help:"Don't ask for confirmation."`)
	}
	c.Given = reflect.New(reflect.StructOf(fields)).Interface()
	return c
}

// asks reports whether the operation asks before it does what can't be undone. Commands of these names don't.
func (c *operationCmd) asks() bool {
	return c.of.ID == "erasePerson" || c.of.Method == http.MethodDelete && !slices.Contains([]string{
		"cancelMessage", "removeSender", "leaveList", "stopSubscriberImport", "deleteSegment", "removeSuppression",
		"removeFromBlocklist", "deleteToken", "signOutPerson", "resetTOTP", "endSession",
		"deleteEndpoint"}, c.of.ID)
}

// ownFlags are flags of every command: a field of the same name is --body.url or --query.url.
var ownFlags = []string{"url", "token", "json", "config", "set", "help", "body", "file", "media"}

// addFields adds a flag for each field of a type, and for the parts of objects.
func (c *operationCmd) addFields(t reflect.Type, above []string,
	add func(w operationWord, t reflect.Type, tag string, args ...any)) {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if c.of.AsQuery {
			name = f.Tag.Get("query")
		}
		if name == "" || name == "-" || c.of.AsQuery && !c.of.Paged && api.Paging(name) {
			continue
		}
		w := operationWord{path: append(slices.Clone(above), name)}
		if w.name = strings.Join(w.path, "."); slices.Contains(ownFlags, w.name) {
			w.name = map[bool]string{true: "query.", false: "body."}[c.of.AsQuery] + w.name
		}
		kind, placeholder := flagType(f.Type)
		w.json = placeholder == "JSON"
		add(w, kind, `name:%q placeholder:%q sep:"none" help:%q`, w.name, placeholder,
			strings.ReplaceAll(fieldHelp(f, f.Tag.Get("doc")), "$", "$$"))
		if part := plainType(f.Type); w.json && part.Kind() == reflect.Struct && len(above) < 2 {
			c.addFields(part, w.path, add)
		}
	}
}

// fieldHelp returns a text about a field with the values that it may have.
func fieldHelp(f reflect.StructField, help string) string {
	if enum := f.Tag.Get("enum"); enum != "" {
		help = strings.TrimPrefix(strings.TrimSuffix(help, ".")+". One of: ", ". ") +
			strings.ReplaceAll(enum, ",", ", ")
	}
	return help
}

func plainType(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// flagType returns the type of the flag of a field, and its placeholder.
func flagType(t reflect.Type) (reflect.Type, string) {
	t = plainType(t)
	switch kind := t.Kind(); {
	case t == reflect.TypeFor[time.Time]():
		return reflect.TypeFor[*string](), "TIME"
	case kind == reflect.Slice && t.Elem().Kind() == reflect.String:
		return reflect.TypeFor[[]string](), "TEXT"
	case kind == reflect.String:
		return reflect.TypeFor[*string](), "TEXT"
	case kind == reflect.Int:
		return reflect.TypeFor[*int](), "N"
	case kind == reflect.Float64:
		return reflect.TypeFor[*float64](), "N"
	case kind == reflect.Bool:
		return reflect.TypeFor[*bool](), ""
	}
	return reflect.TypeFor[*string](), "JSON"
}

func (c *operationCmd) Run(s *session) error {
	var ids []any
	in, texts := map[string]any{}, map[string]string{}
	given := reflect.ValueOf(c.Given).Elem()
	for i, w := range c.words {
		switch {
		case w.name == "":
			ids = append(ids, given.Field(i).String())
		case w.path == nil:
			texts[w.name] = fmt.Sprint(given.Field(i).Interface())
		}
	}
	if body := texts["body"]; body != "" {
		raw, err := s.readJSON("--body", body)
		if err != nil {
			return err
		}
		if json.Unmarshal(raw, &in) != nil || in == nil {
			return usage("--body is not a JSON object")
		}
	}
	for i, w := range c.words {
		if v := given.Field(i); w.path != nil && !v.IsNil() {
			value, err := s.fieldValue(w, v)
			if err != nil {
				return err
			}
			if err := setPart(in, w.path, value); err != nil {
				return err
			}
		}
	}
	what := strings.TrimSpace(c.of.Summary + " " + fmt.Sprint(ids...))
	if c.asks() && texts["yes"] != "true" && !s.confirm("%s? It can't be undone.", clean(what)) {
		return fmt.Errorf("nothing was done. Add --yes to %s", strings.ToLower(what[:1])+what[1:])
	}
	return c.call(s, in, texts, ids)
}

// fieldValue returns what a flag says, as a value of JSON. What isn't JSON is text: an address may be both.
func (s *session) fieldValue(w operationWord, v reflect.Value) (any, error) {
	if v.Kind() != reflect.Pointer || !w.json {
		return reflect.Indirect(v).Interface(), nil
	}
	text := v.Elem().String()
	raw, err := s.read(text, text == "-")
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", w.name, err)
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw), nil
	}
	return value, nil
}

func setPart(in map[string]any, path []string, value any) error {
	for i, name := range path[:len(path)-1] {
		if in[name] == nil {
			in[name] = map[string]any{}
		}
		part, ok := in[name].(map[string]any)
		if !ok {
			return usage("%s is not an object, so it has no %s", strings.Join(path[:i+1], "."), path[i+1])
		}
		in = part
	}
	in[path[len(path)-1]] = value
	return nil
}

// call sends the request and prints the answer.
func (c *operationCmd) call(s *session, in map[string]any, texts map[string]string, ids []any) error {
	query, body := url.Values{}, io.Reader(nil)
	switch {
	case c.of.AsQuery:
		for name, value := range in {
			if list, ok := value.([]string); ok {
				query[name] = list
			} else {
				query.Set(name, fmt.Sprint(value))
			}
		}
	case c.of.In != nil:
		raw, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(raw)
	}
	o := c.of
	if o.Media != "" {
		file, _, err := s.open(texts["file"])
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer file.Close() //nolint:errcheck // it was only read
		o.Media, body = texts["media"], file
	}
	if o.Raw {
		return o.Do(s, s.client, query, body, s.out, ids...)
	}
	var answer bytes.Buffer
	if err := o.Do(s, s.client, query, body, &answer, ids...); err != nil {
		return err
	}
	return s.printJSON(json.RawMessage(answer.Bytes()))
}
