package ui

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Fields of a form have the names that the API gives to the fields of an object, parts after a dot. So put
// writes any object into a form, and take reads it. Lists of objects, times and JSON are left to the caller.

// put writes the fields of an object that are not empty.
func put(f url.Values, prefix string, object any) {
	for field, v := range reflect.Indirect(reflect.ValueOf(object)).Fields() {
		name := prefix + apiName(field)
		switch value := v.Interface().(type) {
		case *int:
			if value != nil {
				f.Set(name, strconv.Itoa(*value))
			}
		case *bool:
			if value != nil {
				f.Set(name, map[bool]string{true: "yes", false: "no"}[*value])
			}
		case bool:
			setOn(f, name, value)
		case float64:
			setNumber(f, name, value)
		case int:
			setNumber(f, name, float64(value))
		case []string:
			f.Set(name, strings.Join(value, ", "))
		default:
			switch {
			case v.Kind() == reflect.String:
				f.Set(name, v.String())
			case field.Anonymous:
				put(f, prefix, value)
			case isPart(v.Type()) && !v.IsNil():
				put(f, name+".", value)
			}
		}
	}
}

// take reads the fields of an object. A part of which nothing is filled in is nil.
func (r *formReader) take(prefix string, object any) {
	for field, v := range reflect.ValueOf(object).Elem().Fields() {
		name := prefix + apiName(field)
		switch into := v.Addr().Interface().(type) {
		case **int:
			if r.text(name) != "" {
				*into = new(r.whole(name))
			}
		case **bool:
			*into = r.yesOrNo(name)
		case *bool:
			*into = r.on(name)
		case *float64:
			*into = r.number(name)
		case *int:
			*into = r.whole(name)
		case *[]string:
			if list := listed(r.Get(name)); len(list) > 0 {
				*into = list
			}
		default:
			switch {
			case v.Kind() == reflect.String:
				v.SetString(r.text(name))
			case field.Anonymous:
				r.take(prefix, into)
			case isPart(v.Type()):
				part := reflect.New(v.Type().Elem())
				if r.take(name+".", part.Interface()); !part.Elem().IsZero() {
					v.Set(part)
				}
			}
		}
	}
}

func apiName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// isPart reports whether a field is an object within an object.
func isPart(t reflect.Type) bool {
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct &&
		t.Elem() != reflect.TypeFor[time.Time]()
}
