package audit

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb/records"
)

const (
	maxFields = 50  // of each entry
	maxValue  = 200 // bytes of a value
)

// diff returns the fields that differ. asked is what the request says: a secret that it sets looks the same
// before and after.
func diff(before, after, asked any) []api.AuditChange {
	was, is, wanted := flat(before), flat(after), flat(asked)
	var all []api.AuditChange
	for _, field := range fields(was, is) {
		old, now := was[field], is[field]
		want, given := wanted[field]
		replaced := given && strings.Contains(now, records.Mask) && want != now && want != ""
		if moves(field) || old == now && !replaced {
			continue
		}
		all = append(all, api.AuditChange{Field: field, Before: shown(field, old), After: shown(field, now)})
	}
	return bounded(all)
}

func asked(request any) []api.AuditChange {
	wanted := flat(request)
	var all []api.AuditChange
	for _, field := range fields(wanted) {
		if value := wanted[field]; value != "" && value != "0" && value != "false" {
			all = append(all, api.AuditChange{Field: field, After: shown(field, value)})
		}
	}
	return bounded(all)
}

func bounded(all []api.AuditChange) []api.AuditChange {
	if len(all) <= maxFields {
		return all
	}
	more := fmt.Sprintf("%d more fields", len(all)-maxFields)
	return append(all[:maxFields:maxFields], api.AuditChange{Field: "…", After: more})
}

func fields(all ...map[string]string) []string {
	names := map[string]bool{}
	for _, m := range all {
		for name := range m {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// moves reports whether a field changes automatically.
func moves(field string) bool {
	return field == "updated" || field == "lastUsed" || field == "deliveries"
}

// flat returns the values of what a record is as JSON, by their path.
func flat(record any) map[string]string {
	out := map[string]string{}
	if record == nil {
		return out
	}
	text, err := json.Marshal(record)
	var v any
	if err != nil || json.Unmarshal(text, &v) != nil {
		return out
	}
	flatten(out, "", v)
	return out
}

func flatten(out map[string]string, path string, v any) {
	below := func(name string) string {
		if name == "Body" && path == "" { // a route's input: its fields are the record's
			return ""
		}
		first, rest := name[:min(1, len(name))], name[min(1, len(name)):]
		if path == "" {
			return strings.ToLower(first) + rest
		}
		return path + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			flatten(out, below(name), inner)
		}
	case []any:
		for i, inner := range v {
			flatten(out, fmt.Sprintf("%s[%d]", path, i), inner)
		}
	case nil:
	case string:
		out[path] = v
	default:
		out[path] = fmt.Sprint(v)
	}
}

// secretNames are parts of the names of fields that hold secrets. Records mask their own; this is for records
// that do not, and for requests.
var secretNames = regexp.MustCompile(`(?i)pass|secret|privatekey|apikey|authorization|headers|^token$|` +
	`(access|refresh)token$|signing`)

// inURL matches the password of a URL.
var inURL = regexp.MustCompile(`(://[^/@:\s]*):[^/@\s]+@`)

// shown returns a value as an entry has it: a secret masked, and no more than its beginning.
func shown(field, value string) string {
	if value == "" {
		return ""
	}
	last := field[strings.LastIndexByte(field, '.')+1:]
	if secretNames.MatchString(last) || strings.Contains(strings.ToLower(field), "headers") {
		return records.Mask
	}
	return clip(inURL.ReplaceAllString(value, "$1:"+records.Mask+"@"))
}

// clip returns the beginning of a value, and its size if that is not all.
func clip(value string) string {
	if len(value) <= maxValue {
		return strings.ToValidUTF8(value, "�")
	}
	cut := maxValue
	for cut > 0 && !utf8.RuneStart(value[cut]) {
		cut--
	}
	return strings.ToValidUTF8(fmt.Sprintf("%s… (%d bytes)", value[:cut], len(value)), "�")
}
