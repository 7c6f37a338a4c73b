package ui

import (
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// The editor of a template has a part for each variant, with fields such as locales.LOCALE.subject. Another
// part adds a variant: it has fields such as added.subject, and its locale is in the field locale.

// contentFields returns the fields of a content or variant. Their names begin with prefix.
func contentFields(prefix, placeholder string) []formField {
	const most = 1 << 20
	return []formField{
		{Name: prefix + "subject", Label: "Subject", Most: 10240, Placeholder: placeholder},
		{Name: prefix + "previewText", Label: "Preview text", Most: 1024, Placeholder: placeholder},
		{Name: prefix + "html", Label: "HTML or Markdown", Kind: "lines", Most: most, Placeholder: placeholder},
		{Name: prefix + "text", Label: "Text", Kind: "lines", Most: most, Placeholder: "generated from the HTML"},
	}
}

// variantGroups returns the parts of the editor for the variants of these locales, and for a new one.
func variantGroups(locales []string) (groups []formGroup) {
	for _, locale := range locales {
		groups = append(groups, formGroup{Legend: "Variant " + locale, Folded: true,
			Fields: contentFields("locales."+locale+".", "as in the content; empty a variant to delete it")})
	}
	return append(groups, formGroup{Legend: "Add a variant", Folded: true, Fields: append([]formField{
		{Name: "locale", Label: "Locale", Most: 64, Placeholder: "de, de-CH or pt-BR"},
	}, contentFields("added.", "as in the content")...)})
}

func (r *formReader) content(prefix string) api.TemplateContent {
	unix := func(name string) string { return strings.ReplaceAll(r.Get(prefix+name), "\r\n", "\n") }
	return api.TemplateContent{Subject: r.text(prefix + "subject"), PreviewText: r.text(prefix + "previewText"),
		HTML: unix("html"), Text: unix("text")}
}

// localesOf returns the locales of a form's variants, sorted.
func localesOf(f url.Values) (locales []string) {
	for name := range f {
		rest, is := strings.CutPrefix(name, "locales.")
		if locale, _, ok := strings.Cut(rest, "."); is && ok && !slices.Contains(locales, locale) {
			locales = append(locales, locale)
		}
	}
	slices.Sort(locales)
	return locales
}

// takeAdded turns the variant that is added into a normal one. It leaves the fields if the locale is wrong.
func (r *formReader) takeAdded() {
	locale, added := r.text("locale"), r.content("added.")
	var wrong string
	switch none := added == (api.TemplateContent{}); {
	case locale == "" && none:
		return
	case locale == "":
		wrong = "is required"
	case none:
		wrong = "needs content"
	case strings.ContainsAny(locale, ". \t"):
		wrong = "must be a locale such as de, de-CH or pt-BR"
	case slices.Contains(localesOf(r.Values), locale):
		wrong = "already has a variant"
	}
	if wrong != "" {
		r.wrong.Add("locale", "%s", wrong)
		return
	}
	put(r.Values, "locales."+locale+".", added)
	put(r.Values, "added.", api.TemplateContent{})
	r.Del("locale")
}

// variants reads the variants. It skips empty ones.
func (r *formReader) variants() map[string]api.TemplateContent {
	all := map[string]api.TemplateContent{}
	for _, locale := range localesOf(r.Values) {
		if c := r.content("locales." + locale + "."); c != (api.TemplateContent{}) {
			all[locale] = c
		}
	}
	return all
}
