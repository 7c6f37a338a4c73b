package ui

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api/fault"
)

// attributeField is the fields of an attribute in the form of a subscriber.
type attributeField struct {
	Number            int
	Name, Kind, Value string // no name: a new one
}

// Field returns the name of one of its fields.
func (a attributeField) Field(name string) string { return attributeName(a.Number-1, name) }

func attributeName(i int, name string) string { return fmt.Sprintf("attribute.%d.%s", i, name) }

// attributeKinds are the types of attributes as the form names them.
var attributeKinds = []string{"text", "number", "yes or no", "list"}

// Kinds returns the choices of a type.
func (subscriberView) Kinds() []string { return attributeKinds }

// Stored returns the attributes of the subscriber.
func (v subscriberView) Stored() (all []attributeField) {
	for i, name := range slices.Sorted(maps.Keys(v.Attributes)) {
		field := attributeField{Number: i + 1, Name: name, Kind: "text"}
		switch value := v.Attributes[name].(type) {
		case bool:
			field.Kind, field.Value = "yes or no", map[bool]string{true: "yes", false: "no"}[value]
		case string:
			field.Value = value
		case []any, []string:
			field.Kind, field.Value = "list", listText(value)
		default:
			field.Kind, field.Value = "number", numberText(value)
		}
		all = append(all, field)
	}
	return all
}

// Fields returns the fields of its attributes, and of a new one.
func (v subscriberView) Fields() []attributeField {
	all := v.Stored()
	return append(all, attributeField{Number: len(all) + 1, Kind: "text"})
}

// numberText returns a number without an exponent.
func numberText(value any) string {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(value)
}

// listText returns a list with commas between its values, or as JSON if one of them has a comma.
func listText(list any) string {
	raw, _ := json.Marshal(list) // texts always encode
	var texts []string
	if json.Unmarshal(raw, &texts) != nil || strings.Contains(strings.Join(texts, ""), ",") {
		return string(raw)
	}
	return strings.Join(texts, ", ")
}

// mostAttributes bounds the fields of the form.
const mostAttributes = 300

// readAttributes returns the change from old attributes to the form's. It removes an attribute whose value is
// empty.
func readAttributes(f url.Values, old map[string]any) (map[string]any, error) {
	patch, wrong := map[string]any{}, fault.Fields{}
	for i := range mostAttributes {
		name := strings.TrimSpace(f.Get(attributeName(i, "name")))
		if name == "" {
			continue
		}
		text := strings.TrimSpace(f.Get(attributeName(i, "value")))
		if was, ok := old[name].(string); ok && text == asTyped(was) {
			continue
		}
		value, err := attributeOf(f.Get(attributeName(i, "kind")), text)
		if err != "" {
			wrong.Add("attributes."+name, "%s", err)
		}
		if !reflect.DeepEqual(value, old[name]) {
			patch[name] = value
		}
	}
	return patch, fault.InvalidFields(wrong)
}

// asTyped returns a text as a field of one line has it.
func asTyped(text string) string {
	return strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(text))
}

// attributeOf returns the value of a type, or what is wrong with its text. nil removes it.
func attributeOf(kind, text string) (value any, wrong string) {
	if text == "" {
		return nil, ""
	}
	switch kind {
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, "must be a number"
		}
		return n, ""
	case "yes or no":
		switch strings.ToLower(text) {
		case "yes", "true":
			return true, ""
		case "no", "false":
			return false, ""
		}
		return nil, "must be yes or no"
	case "list":
		var list []any
		if strings.HasPrefix(text, "[") && json.Unmarshal([]byte(text), &list) == nil {
			return list, ""
		}
		for one := range strings.SplitSeq(text, ",") {
			if one = strings.TrimSpace(one); one != "" {
				list = append(list, one)
			}
		}
		return list, ""
	}
	return text, ""
}
