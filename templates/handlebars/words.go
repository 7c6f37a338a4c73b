package handlebars

import (
	"encoding/json"
	"strings"

	"github.com/rivo/uniseg"
)

// firstPresent returns the first argument that is present and not "".
func firstPresent(in *invoked) (any, error) {
	for _, v := range in.args {
		if !absent(v) && v != "" {
			return v, nil
		}
	}
	return in.args[len(in.args)-1], nil
}

// insert returns its argument or a default, which may be given as "default=Customer".
func insert(in *invoked) (any, error) {
	if v := in.args[0]; !absent(v) && v != "" {
		return v, nil
	}
	if len(in.args) == 2 {
		text, err := in.text(1)
		return strings.TrimPrefix(text, "default="), err
	}
	if v := in.named("default"); !absent(v) {
		return v, nil
	}
	in.run.miss(in.call.args[0])
	return "", nil
}

// length counts the elements of a list, the members of an object, or the characters of a text.
func length(in *invoked) (any, error) {
	switch v := in.args[0].(type) {
	case []any:
		return len(v), nil
	case map[string]any:
		return len(v), nil
	}
	text, err := in.text(0)
	if err == nil {
		err = in.run.spend(len(text)/64, in.call.offset)
	}
	return uniseg.GraphemeClusterCount(text), err
}

// truncate shortens a text to a number of characters, ellipsis included. It never splits a character of
// several code points.
func truncate(in *invoked) (any, error) {
	text, err := in.text(0)
	if err != nil {
		return nil, err
	}
	most, ok := numeric(in.args[1])
	if !ok || most < 0 {
		return nil, in.fault("the number of characters is %q", plainText(in.args[1]))
	}
	ellipsis := "…"
	if len(in.args) == 3 {
		ellipsis = plainText(in.args[2])
	}
	if float64(len(text)) <= most { // bytes are at least as many as characters
		return text, nil
	}
	if err := in.run.spend(int(min(most, float64(len(text))))/64, in.call.offset); err != nil {
		return nil, err
	}
	return shorten(text, int(most), ellipsis), nil
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

func upper(in *invoked) (any, error) {
	text, err := in.text(0)
	return strings.ToUpper(text), err
}

func lower(in *invoked) (any, error) {
	text, err := in.text(0)
	return strings.ToLower(text), err
}

// asJSON writes a value as JSON, in which < > & are escaped, so that it may stand inside a script element
// too.
func asJSON(in *invoked) (any, error) {
	text, err := json.Marshal(in.args[0])
	if err != nil {
		return nil, in.fault("%v", err)
	}
	return string(text), nil
}

// MarshalJSON writes undefined as null.
func (undefined) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
