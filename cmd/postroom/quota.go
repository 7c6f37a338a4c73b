package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
)

// quotaFields returns a quota by the names of its fields; nil: it has none.
func quotaFields[Q any](quota *Q) map[string]*int {
	fields := map[string]*int{}
	if quota != nil {
		raw, _ := json.Marshal(quota)    // a plain struct of numbers
		_ = json.Unmarshal(raw, &fields) // likewise
	}
	return fields
}

func quotaWords(quota *api.Quota) string {
	var words []string
	for name, n := range maps.All(quotaFields(quota)) {
		words = append(words, fmt.Sprintf("%s %d", name, *n))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// quotaOver returns a quota changed as the flags --quota say: NAME=N, or NAME= to remove it.
func quotaOver[Q any](old *Q, flags []string) (*Q, error) {
	if len(flags) == 0 {
		return old, nil
	}
	fields := quotaFields(old)
	for _, text := range flags {
		name, number, _ := strings.Cut(text, "=")
		if delete(fields, name); number == "" {
			continue
		}
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 {
			return nil, usage("--quota: %q has no number; write %s=1000, or %s= to remove it", text, name, name)
		}
		fields[name] = &n
	}
	raw, err := json.Marshal(fields)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	changed, d := new(Q), json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(changed); err != nil {
		return nil, usage("--quota: %v; there are messages, bytes and perDay, and for accounts templates, "+
			"suppressions, importSize, subscribers, events and requests", err)
	}
	return changed, nil
}
