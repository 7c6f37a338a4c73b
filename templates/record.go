package templates

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/redisdb"
	"github.com/postroom/postroom/redisdb/records"
	"github.com/postroom/postroom/templates/handlebars"
	"github.com/postroom/postroom/templates/render"
)

// The kinds of template.
const (
	kindTemplate = "template"
	kindPartial  = "partial"
	kindLayout   = "layout"
)

// How many versions are kept of a template.
const (
	keepVersions = 20
	keepBytes    = 4 << 20 // together; the current one always stays
)

// definition is what a version holds.
type definition = api.TemplateDefinition

// record is what is kept of a template besides its content, which is in the state of the record, by version: so that all of them can be
// held in memory by every process.
type record struct {
	Account     string    `json:"account,omitempty"` // empty: every account may use it
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Kind        string    `json:"kind"`
	Format      string    `json:"format"`
	Locales     []string  `json:"locales,omitempty"` // of its variants, in the order of the alphabet
	Layout      string    `json:"layout,omitempty"`
	Uses        []string  `json:"uses,omitempty"`     // names of the partials in any part of any variant
	Computed    bool      `json:"computed,omitempty"` // the name of some partial is computed: it may use any
	Version     int       `json:"version"`
	Versions    []version `json:"versions"` // that are kept, the current one last
}

// version is what is known of one version besides its content.
type version struct {
	Number   int       `json:"number"`
	Created  time.Time `json:"created"`
	Size     int       `json:"size"`               // of its JSON, in bytes
	Restored int       `json:"restored,omitempty"` // the version whose content it has again
}

// entry is a record with its id and times.
type entry = records.Record[record]

func newStore(db *redisdb.DB, now func() time.Time) *records.Store[record] {
	return records.New(db, nil, records.Kind[record]{
		Key: "template", Index: "templates", Name: "template", Code: "TemplateChanged",
		Secrets: func(*record) []records.Secret { return nil },
	}, records.Options[record]{Now: now})
}

// describe notes what a definition is like.
func (r *record) describe(d *definition) {
	r.Format, r.Layout, r.Computed = formatOf(d), d.Layout, false
	r.Locales = slices.Sorted(maps.Keys(d.Locales))
	names := map[string]bool{}
	for _, c := range append(slices.Collect(maps.Values(d.Locales)), d.Content) {
		for _, text := range []string{c.Subject, c.PreviewText, c.HTML, c.Text} {
			refs, err := handlebars.Refer(text, handlebars.Options{})
			if err != nil {
				continue // it will be told when the template is read
			}
			r.Computed = r.Computed || refs.Computed
			for _, name := range refs.Partials {
				names[name] = true
			}
		}
	}
	r.Uses = slices.Sorted(maps.Keys(names))
}

// renew returns the record a further version with a definition, and says what becomes of the versions in the state of the record.
func (r *record) renew(d *definition, restored int, now time.Time) (map[string]string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("templates: write definition: %w", err)
	}
	text = legible(text)
	r.describe(d)
	r.Version++
	r.Versions = append(slices.Clone(r.Versions), version{Number: r.Version, Created: now, Size: len(text), Restored: restored})
	state := map[string]string{strconv.Itoa(r.Version): string(text)}
	for total, i := 0, len(r.Versions)-1; i >= 0; i-- {
		total += r.Versions[i].Size
		if kept := len(r.Versions) - i; kept > 1 && (kept > keepVersions || total > keepBytes) {
			for _, old := range r.Versions[:i+1] {
				state[strconv.Itoa(old.Number)] = ""
			}
			r.Versions = r.Versions[i+1:]
			break
		}
	}
	return state, nil
}

// find returns what is known of a version that is kept.
func (r *record) find(number int) (version, bool) {
	i := slices.IndexFunc(r.Versions, func(v version) bool { return v.Number == number })
	if i < 0 {
		return version{}, false
	}
	return r.Versions[i], true
}

// mayUse reports whether an account may use what is stored.
func (r *record) mayUse(account string) bool { return r.Account == "" || r.Account == account }

// formatOf is the format of a definition, which may leave it to the default.
func formatOf(d *definition) string {
	if d.Format == "" {
		return string(render.FormatHTML)
	}
	return d.Format
}

// variantOf returns the content for a locale, and the locale of the variant it is made from, if there is one. Parts that the variant lacks are
// those of the content itself; but a text goes with its html, which it repeats.
func variantOf(d *definition, locale string) (api.TemplateContent, string) {
	chosen := render.Choose(locale, slices.Sorted(maps.Keys(d.Locales)))
	if chosen == "" {
		return d.Content, ""
	}
	c := d.Locales[chosen]
	if c.Subject == "" {
		c.Subject = d.Content.Subject
	}
	if c.PreviewText == "" {
		c.PreviewText = d.Content.PreviewText
	}
	if c.Text == "" && c.HTML == "" {
		c.Text = d.Content.Text
	}
	if c.HTML == "" {
		c.HTML = d.Content.HTML
	}
	return c, chosen
}
