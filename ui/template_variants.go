package ui

import (
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
)

// The editor of a template has a part for each variant, whose fields are locales.LOCALE.subject and so on. A
// further part adds a variant: its fields are added.subject and so on, with its locale in the field locale.

// contentFields are the fields of a content or variant, whose names begin with prefix.
func contentFields(prefix, placeholder string) []formField {
	const most = 1 << 20
	return []formField{
		{Name: prefix + "subject", Label: "Subject", Most: 10240, Placeholder: placeholder},
		{Name: prefix + "previewText", Label: "Preview text", Most: 1024, Placeholder: placeholder},
		{Name: prefix + "html", Label: "html, or Markdown", Kind: "lines", Most: most, Placeholder: placeholder},
		{Name: prefix + "text", Label: "Text", Kind: "lines", Most: most, Placeholder: "made from the html"},
	}
}

// variantGroups are the parts of the editor for the variants of these locales, and for one more.
func variantGroups(locales []string) (groups []formGroup) {
	for _, locale := range locales {
		groups = append(groups, formGroup{Legend: "Variant " + locale, Folded: true,
			Fields: contentFields("locales."+locale+".", "as in the content; a variant without anything is deleted")})
	}
	return append(groups, formGroup{Legend: "Add a variant", Folded: true, Fields: append([]formField{
		{Name: "locale", Label: "Its locale", Most: 64, Placeholder: "de, de-CH or pt-BR"},
	}, contentFields("added.", "as in the content")...)})
}

func (r *formReader) content(prefix string) api.TemplateContent {
	unix := func(name string) string { return strings.ReplaceAll(r.Get(prefix+name), "\r\n", "\n") }
	return api.TemplateContent{Subject: r.text(prefix + "subject"), PreviewText: r.text(prefix + "previewText"),
		HTML: unix("html"), Text: unix("text")}
}

// localesOf returns the locales that a form has variants of, in the order of the alphabet.
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

// takeAdded makes the variant that is added one of the others. What is wrong with its locale stays beside the
// field.
func (r *formReader) takeAdded() {
	locale, added := r.text("locale"), r.content("added.")
	var wrong string
	switch none := added == (api.TemplateContent{}); {
	case locale == "" && none:
		return
	case locale == "":
		wrong = "is required for a variant"
	case none:
		wrong = "needs a content"
	case strings.ContainsAny(locale, ". \t"):
		wrong = "must be a locale such as de, de-CH or pt-BR"
	case slices.Contains(localesOf(r.Values), locale):
		wrong = "has a variant already"
	}
	if wrong != "" {
		r.wrong.Add("locale", "%s", wrong)
		return
	}
	put(r.Values, "locales."+locale+".", added)
	put(r.Values, "added.", api.TemplateContent{})
	r.Del("locale")
}

// variants reads the variants. Those without anything are left out.
func (r *formReader) variants() map[string]api.TemplateContent {
	all := map[string]api.TemplateContent{}
	for _, locale := range localesOf(r.Values) {
		if c := r.content("locales." + locale + "."); c != (api.TemplateContent{}) {
			all[locale] = c
		}
	}
	return all
}
