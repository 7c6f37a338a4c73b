package templates

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/internal/message"
	"github.com/postroom/postroom/outbox/templates/handlebars"
)

// Limits of stored templates.
const (
	maxPart       = 256 << 10 // bytes of an html or text, the limit of every source
	maxLine       = 10 << 10  // bytes of a subject or a preview text
	maxDefinition = 1 << 20   // bytes of all parts of all variants, with the sample, as JSON
	maxSample     = 64 << 10
	maxLocales    = 50
)

var (
	partialPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*([./][A-Za-z0-9_-]+)*$`)
	localePattern  = regexp.MustCompile(`^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8}){0,4}$`)
)

// faults collects the errors of a request.
type faults struct{ fault.Fields }

// checkHead reports errors in a template's name, id and other head fields.
func checkHead(r *record) fault.Fields {
	var f faults
	f.line("name", r.Name, 256)
	f.line("description", r.Description, 1024)
	switch {
	case r.Kind != kindTemplate && r.Kind != kindPartial && r.Kind != kindLayout:
		f.Add("kind", "must be template, partial or layout")
	case strings.TrimSpace(r.Name) == "":
		f.Add("name", "is not allowed to be empty")
	case r.Kind == kindPartial && !partialPattern.MatchString(r.Name):
		f.Add("name", "of a partial must start with a letter and contain only letters, digits, _, -, . "+
			"and /, so that {{> name}} finds it")
	}
	return f.Fields
}

func (f *faults) line(key, s string, most int) {
	switch {
	case utf8.RuneCountInString(s) > most:
		f.Add(key, "must not be longer than %d characters", most)
	case !message.IsLine(s):
		f.Add(key, "must not contain control characters")
	}
}

// normalise writes a definition in its normal form.
func normalise(d *definition) {
	d.Format = formatOf(d)
	if len(d.Locales) == 0 {
		d.Locales = nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(d.Sample, &members) == nil && len(members) == 0 {
		d.Sample = nil
	}
	var compact bytes.Buffer
	if json.Compact(&compact, d.Sample) == nil {
		d.Sample = legible(compact.Bytes())
	}
}

// legible restores < > & in JSON: encoding/json writes them as \u003c, in clients too.
func legible(text []byte) []byte {
	if !bytes.Contains(text, []byte(`\u00`)) {
		return text
	}
	return []byte(unescapes.Replace(string(text)))
}

// unescapes skips an escaped backslash: what follows it isn't an escape.
var unescapes = strings.NewReplacer(`\\`, `\\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// checkDefinition reports errors in a definition before it is parsed as a template.
func checkDefinition(kind string, d *definition) fault.Fields {
	var f faults
	switch d.Format {
	case "html", "markdown":
	case "mjml":
		f.Add("format", "must be html or markdown. Compile MJML with npx mjml order.mjml -o order.html, "+
			"and store the HTML")
	default:
		f.Add("format", "must be html or markdown")
	}
	if kind == kindLayout && d.Format == "markdown" {
		f.Add("format", "must be html for a layout, even if its templates use Markdown")
	}
	if d.Layout != "" && kind != kindTemplate {
		f.Add("layout", "is for templates")
	}
	if d.Missing != "" && d.Missing != "empty" && d.Missing != "error" {
		f.Add("missing", "must be empty or error")
	}
	f.content("content", kind, d.Content)
	if len(d.Locales) > maxLocales {
		f.Add("locales", "must not have more than %d variants", maxLocales)
		return f.Fields
	}
	f.locales(kind, d.Locales)
	f.sample(d.Sample)
	if text, err := json.Marshal(d); err != nil || len(text) > maxDefinition {
		f.Add("content", "must not be larger than 1 MB, with all locales and the sample")
	}
	return f.Fields
}

func (f *faults) locales(kind string, variants map[string]api.TemplateContent) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(variants)) {
		key := "locales." + clip(name)
		if !localePattern.MatchString(name) {
			f.Add(key, "must be a locale such as de, de-CH or pt-BR")
		}
		normal := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		if seen[normal] {
			f.Add(key, "is there twice")
		}
		seen[normal] = true
		f.content(key, kind, variants[name])
	}
}

// content checks the parts of one variant.
func (f *faults) content(key, kind string, c api.TemplateContent) {
	for _, part := range []struct {
		name, text string
		most       int
	}{{"subject", c.Subject, maxLine}, {"previewText", c.PreviewText, maxLine}, {"html", c.HTML, maxPart}, {
		"text", c.Text, maxPart}} {
		at := key + "." + part.name
		switch {
		case part.text == "":
		case kind != kindTemplate && (part.name == "subject" || part.name == "previewText") || kind == kindLayout &&
			part.name == "text":
			f.Add(at, "is only for templates; a %s has none", kind)
		case len(part.text) > part.most:
			f.Add(at, "must not be larger than %d KB", part.most>>10)
		case !utf8.ValidString(part.text) || strings.ContainsRune(part.text, 0):
			f.Add(at, "must be text without NUL")
		}
	}
	switch {
	case c == (api.TemplateContent{}):
		f.Add(key, "must have a subject, HTML or text")
	case kind == kindLayout && c.HTML == "":
		f.Add(key+".html", "is required for a layout")
	case kind == kindLayout && !hasBlock(c.HTML):
		f.Add(key+".html", "must contain {{> @partial-block}}, where the templates' HTML goes")
	}
}

// hasBlock reports whether a layout prints its content. Unreadable layouts are reported elsewhere.
func hasBlock(layout string) bool {
	refs, err := handlebars.Refer(layout, handlebars.Options{})
	return err != nil || refs.Block
}

func (f *faults) sample(sample json.RawMessage) {
	var members map[string]any
	switch {
	case len(sample) == 0:
	case len(sample) > maxSample:
		f.Add("sample", "must not be larger than %d KB", maxSample>>10)
	case json.Unmarshal(sample, &members) != nil:
		f.Add("sample", "must be of type object")
	}
}
