package render

import "strings"

// Choose returns the variant for a locale: the same locale, its language ("de" for "de-AT"), another region
// of the language in the given order, or "".
func Choose(locale string, variants []string) string {
	if len(locale) > 64 { // longer than any valid tag
		return ""
	}
	normal := func(tag string) string { return strings.ToLower(strings.ReplaceAll(tag, "_", "-")) }
	language := func(tag string) string { l, _, _ := strings.Cut(normal(tag), "-"); return l }
	for tag := normal(locale); tag != ""; tag = tag[:max(0, strings.LastIndexByte(tag, '-'))] {
		for _, v := range variants {
			if normal(v) == tag {
				return v
			}
		}
	}
	for _, v := range variants {
		if locale != "" && language(v) == language(locale) {
			return v
		}
	}
	return ""
}
