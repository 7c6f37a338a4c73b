package main

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// filter is the flags that select the rows of a list, made from the fields of its query.
type filter[Q any] struct {
	Given any `embed:""` // a pointer to a struct, which has a field for each flag
}

// otherFlags are the flags of parameters whose names are not their own.
var otherFlags = map[string]string{"listId": "list", "q": "search", "createdAfter": "since",
	"createdBefore": "until", "from": "since", "to": "until", "after": "since", "before": "until"}

// filterOf returns the flags of a query, but for the parameters that a command has flags of its own for.
func filterOf[Q any](without ...string) filter[Q] {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Q]()) {
		name := f.Tag.Get("query")
		if name == "" || api.Paging(name) || slices.Contains(without, name) {
			continue
		}
		if other := otherFlags[name]; other != "" {
			name = other
		}
		kind, _ := flagType(f.Type)
		help, placeholder := fieldHelp(f, cmp.Or(f.Tag.Get("help"), f.Tag.Get("doc"))), strings.ToUpper(name)
		if f.Type == reflect.TypeFor[time.Time]() {
			help, placeholder = help+": 2h, 7d, or 2030-12-24T08:00:00Z", "WHEN"
		}
		fields = append(fields, reflect.StructField{Name: f.Name, Type: kind, Tag: reflect.StructTag(fmt.Sprintf(
			`name:%q placeholder:%q enum:%q help:%q`, name, placeholder, f.Tag.Get("enum"), help+"."))})
	}
	return filter[Q]{Given: reflect.New(reflect.StructOf(fields)).Interface()}
}

func (f filter[Q]) selects() bool {
	for _, v := range reflect.ValueOf(f.Given).Elem().Fields() {
		if !v.IsNil() {
			return true
		}
	}
	return false
}

// query returns what the flags say.
func (f filter[Q]) query() (q Q, err error) {
	for field, v := range reflect.ValueOf(f.Given).Elem().Fields() {
		if v.IsNil() {
			continue
		}
		into := reflect.ValueOf(&q).Elem().FieldByName(field.Name)
		if at, ok := into.Addr().Interface().(*time.Time); ok {
			if *at, err = parseSince(v.Elem().String(), time.Now()); err != nil {
				return q, usage("--%s: %v", field.Tag.Get("name"), err)
			}
			continue
		}
		into.Set(v.Elem().Convert(into.Type()))
	}
	return q, nil
}
