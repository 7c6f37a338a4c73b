package provider

import (
	"maps"
	"slices"
	"strings"
)

const (
	maxTags     = 50   // for each event
	maxTag      = 256  // bytes of a tag, and of the name of a piece of metadata
	maxMetadata = 50   // pieces of an event
	maxValue    = 1024 // bytes of each
)

func cleanTags(tags []string) []string {
	var kept []string
	for _, tag := range tags {
		if tag = clean(tag, maxTag); tag != "" && len(kept) < maxTags {
			kept = append(kept, tag)
		}
	}
	return kept
}

func cleanMetadata(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	kept := make(map[string]string, min(len(all), maxMetadata))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(kept) == maxMetadata {
			break
		}
		if clear := clean(name, maxTag); clear != "" {
			kept[clear] = clean(all[name], maxValue)
		}
	}
	return kept
}

// metadata flattens an object to texts; nil values are left out.
func metadata(o object) map[string]string {
	all := make(map[string]string, len(o))
	for name, v := range o {
		switch s := v.(type) {
		case nil:
		case string:
			all[name] = s
		default:
			all[name] = string(canonical(s))
		}
	}
	return all
}

// attached reads metadata from the text of a JSON object. Any other text is kept whole under its name.
func attached(name, s string) map[string]string {
	if s = strings.TrimSpace(s); s == "" {
		return nil
	}
	if o, err := parseObject([]byte(s)); err == nil {
		return metadata(o)
	}
	return map[string]string{name: s}
}

// tagList reads tags from a text: a JSON list, or one tag.
func tagList(s string) []string {
	if strings.HasPrefix(strings.TrimSpace(s), "[") {
		if v, err := parseJSON([]byte(s)); err == nil {
			return object{"": v}.texts("")
		}
	}
	return []string{s}
}

// headerTags reads the headers X-Tag, X-Tags and X-Metadata, which sending libraries use for providers
// without tags and metadata.
func (e *Event) headerTags(headers []object) {
	for _, h := range headers {
		switch strings.ToLower(h.text("name")) {
		case "x-tag", "x-tags":
			e.Tags = append(e.Tags, tagList(h.text("value"))...)
		case "x-metadata":
			e.attach(attached("X-Metadata", h.text("value")))
		}
	}
}

// attach adds metadata without replacing any.
func (e *Event) attach(more map[string]string) {
	if len(more) == 0 {
		return
	}
	all := maps.Clone(more)
	maps.Copy(all, e.Metadata)
	e.Metadata = all
}
