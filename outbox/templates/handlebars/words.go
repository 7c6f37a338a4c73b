package handlebars

import (
	"encoding/json"
	"strings"

	"github.com/rivo/uniseg"
)

// firstPresent returns the first argument that is present and not "".
func firstPresent(in *invoked) any { return in.first(func(v any) bool { return !blank(v) }) }

// blank reports whether a value is absent or "".
func blank(v any) bool { return absent(v) || v == "" }

// insert returns its argument or a default, which may be given as "default=Customer".
func insert(in *invoked) any {
	if v := in.args[0]; !blank(v) {
		return v
	}
	if len(in.args) == 2 {
		return strings.TrimPrefix(in.text(1), "default=")
	}
	if v := in.named("default"); !absent(v) {
		return v
	}
	in.run.miss(in.call.args[0])
	return ""
}

// length counts the elements of a list, the members of an object, or the characters of a text.
func length(in *invoked) any {
	switch v := in.args[0].(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	text := in.text(0)
	in.run.spend(len(text)/64, in.call.offset)
	return uniseg.GraphemeClusterCount(text)
}

// truncate shortens a text to a number of characters, ellipsis included. It never splits a character of
// several code points.
func truncate(in *invoked) any {
	text := in.text(0)
	most, ok := numeric(in.args[1])
	if !ok || most < 0 {
		panic(in.fault("the number of characters is %q", plainText(in.args[1])))
	}
	ellipsis := "…"
	if len(in.args) == 3 {
		ellipsis = plainText(in.args[2])
	}
	if float64(len(text)) <= most { // bytes are at least as many as characters
		return text
	}
	in.run.spend(int(most)/64, in.call.offset)
	return shorten(text, int(most), ellipsis)
}

func shorten(text string, most int, ellipsis string) string {
	keep := max(0, most-uniseg.GraphemeClusterCount(ellipsis))
	end, cut, state := 0, 0, -1
	for rest, n := text, 0; rest != ""; n++ {
		if n == keep {
			cut = end
		}
		if n == most {
			return strings.TrimRightFunc(text[:cut], isSpace) + ellipsis
		}
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		end += len(cluster)
	}
	return text
}

func upper(in *invoked) any { return strings.ToUpper(in.text(0)) }

func lower(in *invoked) any { return strings.ToLower(in.text(0)) }

// asJSON writes a value as JSON, in which < > & are escaped, so that it may stand inside a script element
// too.
func asJSON(in *invoked) any {
	text, err := json.Marshal(in.args[0])
	if err != nil {
		panic(in.fault("%v", err))
	}
	return string(text)
}

// MarshalJSON writes undefined as null.
func (undefined) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
