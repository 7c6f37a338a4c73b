package templates

import (
	"cmp"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/redisdb"
	"github.com/postroom/postroom/internal/redisdb/records"
	"github.com/postroom/postroom/outbox/templates/handlebars"
	"github.com/postroom/postroom/outbox/templates/render"
)

// The kinds of template.
const (
	kindTemplate = "template"
	kindPartial  = "partial"
	kindLayout   = "layout"
)

// Limits of the kept versions of a template.
const (
	keepVersions = 20
	keepBytes    = 4 << 20 // in total; the current version is always kept
)

// definition is the content of a version.
type definition = api.TemplateDefinition

// record is the data of a template without its content. The contents are in the record's state, by version,
// so that every process can hold all records in memory.
type record struct {
	Account     string    `json:"account,omitempty"` // if empty, every account may use it
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Kind        string    `json:"kind"`
	Format      string    `json:"format"`
	Locales     []string  `json:"locales,omitempty"` // its variants' locales, in alphabetical order
	Layout      string    `json:"layout,omitempty"`
	Uses        []string  `json:"uses,omitempty"`     // names of the partials in any part of any variant
	Computed    bool      `json:"computed,omitempty"` // some partial name is computed: it may use any
	Version     int       `json:"version"`
	Versions    []version `json:"versions"` // that are kept, the current one last
}

// version is the data of a version without its content.
type version struct {
	Number   int       `json:"number"`
	Created  time.Time `json:"created"`
	Size     int       `json:"size"`               // bytes of its JSON
	Restored int       `json:"restored,omitempty"` // the version it was restored from
}

// entry is a record with its id and times.
type entry = records.Record[record]

func newStore(db *redisdb.DB, o Options) *records.Store[record] {
	return records.New(db, nil, records.Kind[record]{
		Key: "template", Index: "templates", Name: "template", Code: "TemplateChanged", Missing: notFound,
		Secrets: func(*record) []records.Secret { return nil },
	}, records.Options[record]{Now: o.Now, InUse: o.InUse})
}

// describe sets the fields that describe a definition.
func (r *record) describe(d *definition) {
	r.Format, r.Layout, r.Computed = formatOf(d), d.Layout, false
	r.Locales = slices.Sorted(maps.Keys(d.Locales))
	names := map[string]bool{}
	for _, c := range append(slices.Collect(maps.Values(d.Locales)), d.Content) {
		for _, text := range []string{c.Subject, c.PreviewText, c.HTML, c.Text} {
			refs, err := handlebars.Refer(text, handlebars.Options{})
			if err != nil {
				continue // parsing reports it
			}
			r.Computed = r.Computed || refs.Computed
			for _, name := range refs.Partials {
				names[name] = true
			}
		}
	}
	r.Uses = slices.Sorted(maps.Keys(names))
}

// renew returns the record with a new version, and the changes to the versions in its state.
func (r *record) renew(d *definition, restored int, now time.Time) (map[string]string, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("templates: write definition: %w", err)
	}
	text = legible(text)
	r.describe(d)
	r.Version++
	r.Versions = append(slices.Clone(r.Versions), version{Number: r.Version, Created: now, Size: len(text),
		Restored: restored})
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

// find returns a kept version.
func (r *record) find(number int) (version, bool) {
	i := slices.IndexFunc(r.Versions, func(v version) bool { return v.Number == number })
	if i < 0 {
		return version{}, false
	}
	return r.Versions[i], true
}

// mayUse reports whether an account may use the template.
func (r *record) mayUse(account string) bool { return r.Account == "" || r.Account == account }

// formatOf returns the format of a definition, or the default.
func formatOf(d *definition) string { return cmp.Or(d.Format, string(render.FormatHTML)) }

// variantOf returns the content for a locale, and the locale of its variant, if any. Missing parts of a
// variant come from the content itself. The text is the exception: it belongs to the html it repeats.
func variantOf(d *definition, locale string) (api.TemplateContent, string) {
	chosen := render.Choose(locale, slices.Sorted(maps.Keys(d.Locales)))
	if chosen == "" {
		return d.Content, ""
	}
	c := d.Locales[chosen]
	c.Subject = cmp.Or(c.Subject, d.Content.Subject)
	c.PreviewText = cmp.Or(c.PreviewText, d.Content.PreviewText)
	if c.HTML == "" {
		c.HTML, c.Text = d.Content.HTML, cmp.Or(c.Text, d.Content.Text)
	}
	return c, chosen
}

// alphabet sorts as the encoded values do and omits ambiguous letters.
var alphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// newID returns an id of 20 characters. Later ids sort after earlier ones, so lists are in order of creation.
func newID(now time.Time) string {
	var raw [12]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(raw[6:]) // never fails
	return alphabet.EncodeToString(raw[:])
}
