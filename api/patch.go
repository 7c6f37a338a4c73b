package api

import "reflect"

// Set sets a field to the value of a patch. If value is nil, the field stays as it is.
func Set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Patch gives an object the fields that a patch has, by their names. An empty struct where the object has a
// pointer to one takes it away. What the object has no field for, such as the version that a change is based
// on, is left to the caller.
func Patch(object, patch any) {
	to, from := reflect.ValueOf(object).Elem(), reflect.ValueOf(patch)
	for field, given := range from.Fields() {
		into := to.FieldByName(field.Name)
		switch kind := given.Kind(); {
		case !into.IsValid() || given.IsZero():
		case kind == reflect.Pointer && given.Type() != into.Type():
			into.Set(given.Elem())
		case kind == reflect.Pointer && given.Elem().Kind() == reflect.Struct && given.Elem().IsZero():
			into.SetZero()
		case kind == reflect.Pointer || kind == reflect.Map || kind == reflect.Slice:
			into.Set(given)
		}
	}
}

// PatchOf returns the patch that changes from into to: the fields of P whose values differ.
func PatchOf[P any](from, to any) (patch P) {
	before, after, p := reflect.ValueOf(from), reflect.ValueOf(to), reflect.ValueOf(&patch).Elem()
	for i := range p.NumField() {
		name := p.Type().Field(i).Name
		if now := after.FieldByName(name); !reflect.DeepEqual(before.FieldByName(name).Interface(),
			now.Interface()) {
			p.Field(i).Set(reflect.New(now.Type()))
			p.Field(i).Elem().Set(now)
		}
	}
	return patch
}
