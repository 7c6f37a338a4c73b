package server

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/schedule"
)

// inputType fills the input struct of a handler from a request: its fields tagged path, query and header, and
// the field Body. If Body is a pointer, a request may have no body. Each route has one.
type inputType struct {
	params   []param
	body     shape // nil if there is no body, or it is an email
	mail     bool  // the body is an email
	optional bool  // a request may have no body
	index    []int // of Body
	queries  []string
	query    []int // parameters of the whole query, whose names the handler checks; nil if it gets none
	account  bool  // the account may be in the query, the body, or both
}

// param is one field filled from the path, the query or a header.
type param struct {
	in, name string
	index    []int
	kind     reflect.Type
	bounds   bounds
}

// inputOf returns the inputType of a struct. An input that isn't paged takes no parameters that choose a
// page. A wrong tag is a programmer's error: it panics when the routes are made.
func inputOf(t reflect.Type, paged bool) inputType {
	in := inputType{queries: []string{"access_token"}}
	for _, f := range reflect.VisibleFields(t) {
		if f.Type == reflect.TypeFor[mailBody]() {
			in.mail, in.index = true, f.Index
			continue
		}
		if f.Type == reflect.TypeFor[url.Values]() {
			in.query = f.Index
			continue
		}
		if f.Name == "Body" {
			in.body, in.index, in.optional = shapeOf(f.Type, bounds{}), f.Index, f.Type.Kind() == reflect.Pointer
			continue
		}
		for _, where := range []string{"path", "query", "header"} {
			if name := f.Tag.Get(where); name != "" && (paged || !api.Paging(name)) {
				in.params = append(in.params, param{in: where, name: name, index: f.Index, kind: f.Type,
					bounds: boundsOf(f)})
				if where == "query" {
					in.queries = append(in.queries, name)
				}
			}
		}
	}
	body, ok := t.FieldByName("Body")
	if ok = ok && body.Type.Kind() == reflect.Struct && slices.Contains(in.queries, "account"); ok {
		_, in.account = body.Type.FieldByName("Account")
	}
	return in
}

// bind fills an input from a request. m is the memory reserved for the body. The error has the invalid fields
// of both query and body.
func (t inputType) bind(c echo.Context, m *capacity, limit int64, into reflect.Value) error {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return fault.New(fault.Invalid, "", "Invalid query string")
	}
	var faults []fault.Field
	if t.query != nil {
		into.FieldByIndex(t.query).Set(reflect.ValueOf(query))
	} else {
		faults = t.unknownQueries(query)
	}
	for _, p := range t.params {
		if p.kind == textsType {
			faults = append(faults, p.setAll(into.FieldByIndex(p.index), query[p.name])...)
			continue
		}
		text, given, ok := p.text(c, query)
		if !ok {
			faults = append(faults, wrong(p.name, "must be given once"))
			continue
		}
		if given {
			faults = append(faults, p.set(into.FieldByIndex(p.index), text)...)
		}
	}
	if t.mail {
		mail, err := readMail(c, m, limit)
		if err != nil {
			return err
		}
		into.FieldByIndex(t.index).SetBytes(mail)
		return fault.InvalidFields(faults)
	}
	if t.body == nil || t.optional && c.Request().ContentLength == 0 {
		return fault.InvalidFields(faults)
	}
	d, err := openBody(c, m, limit)
	if err != nil {
		return err
	}
	if d.empty {
		if t.optional {
			return fault.InvalidFields(faults)
		}
		return fault.New(fault.Invalid, "", "The request has no body; a JSON object is expected")
	}
	t.body(&d, into.FieldByIndex(t.index))
	if err := closeBody(c, m, limit, &d); err != nil {
		return err
	}
	if t.account {
		body := into.FieldByIndex(t.index).FieldByName("Account")
		faults = append(faults, oneAccount(into.FieldByName("Account"), body)...)
	}
	return fault.InvalidFields(append(d.faults, faults...))
}

// oneAccount sets the account of a body without one to the query's. It refuses two that differ.
func oneAccount(query, body reflect.Value) []fault.Field {
	switch {
	case body.String() == "":
		body.SetString(query.String())
	case query.String() != "" && query.String() != body.String():
		return []fault.Field{wrong("account", "is not the same in the query and the body")}
	}
	return nil
}

func (t inputType) unknownQueries(query url.Values) (faults []fault.Field) {
	for name := range query {
		if !slices.Contains(t.queries, name) {
			faults = append(faults, wrong(clip(name), "is not allowed"))
		}
	}
	slices.SortFunc(faults, func(a, b fault.Field) int { return strings.Compare(a.Key, b.Key) })
	return faults[:min(len(faults), maxFaults)]
}

func pathParam(c echo.Context, name string) string {
	text := c.Param(name)
	if c.Request().URL.RawPath != "" { // echo matched the escaped path
		if plain, err := url.PathUnescape(text); err == nil {
			return plain
		}
	}
	return text
}

// text returns the value of the parameter in a request. An empty value is the same as none.
func (p param) text(c echo.Context, query url.Values) (text string, given, ok bool) {
	switch p.in {
	case "path":
		text = pathParam(c, p.name)
	case "query":
		if len(query[p.name]) > 1 {
			return "", false, false
		}
		text = query.Get(p.name)
	case "header":
		text = c.Request().Header.Get(p.name)
	}
	return text, text != "", true
}

// textsType is the type of parameters of the query that may be there several times.
var textsType = reflect.TypeFor[[]string]()

// setAll writes the values of such a parameter into its field, or returns their faults.
func (p param) setAll(field reflect.Value, values []string) (faults []fault.Field) {
	for _, text := range values[:min(len(values), maxFaults)] {
		for _, what := range p.bounds.ofString(text) {
			faults = append(faults, wrong(p.name, what))
		}
	}
	field.Set(reflect.ValueOf(values))
	return faults
}

// set writes the parameter into its field, or returns its faults.
func (p param) set(field reflect.Value, text string) (faults []fault.Field) {
	var broken []string
	switch {
	case p.kind == timeType:
		t, err := schedule.Instant(text, time.UTC)
		if err != nil {
			broken = []string{"must be in ISO 8601 date format"}
		} else if t.IsZero() { // how .NET writes no time
			t = t.Add(time.Nanosecond)
		}
		field.Set(reflect.ValueOf(t))
	case p.kind.Kind() == reflect.Int || p.kind.Kind() == reflect.Int64:
		n, err := strconv.Atoi(text)
		if err != nil {
			broken = []string{"must be a number"}
		} else {
			broken = p.bounds.ofNumber(float64(n))
		}
		field.SetInt(int64(n))
	case p.kind.Kind() == reflect.String:
		broken = p.bounds.ofString(text)
		field.SetString(text)
	case p.kind.Kind() == reflect.Bool:
		if broken = p.bounds.ofString(text); broken == nil && text != "true" && text != "false" {
			broken = []string{"must be true or false"}
		}
		field.SetBool(text == "true")
	default:
		panic("server: no way to read a " + p.kind.String() + " from a parameter")
	}
	for _, what := range broken {
		faults = append(faults, wrong(p.name, what))
	}
	return faults
}
