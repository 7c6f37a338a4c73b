package ui

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

const templatesPerPage = 100

var templateKinds = []string{"template", "partial", "layout"}

type templatesView struct {
	Kind, Account, Search string
	Kinds                 []string
	Templates             []api.TemplateRow
	Pager                 pager
}

// Any reports whether there is a filter.
func (v templatesView) Any() bool { return v.Kind != "" || v.Account != "" || v.Search != "" }

func (u *UI) templates(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := templatesView{Kind: q.Get("kind"), Account: strings.TrimSpace(q.Get("account")),
		Search: strings.TrimSpace(q.Get("search")), Kinds: templateKinds}
	if v.Kind != "" && !slices.Contains(templateKinds, v.Kind) || len(v.Account) > 256 || len(v.Search) > 256 {
		return fault.InvalidField("kind", "isn’t one of the choices, or account or search is too long")
	}
	if v.Account != "" {
		if _, err := ownAccount(r, v.Account); err != nil {
			return err
		}
	}
	page := pageOf(q)
	got, err := u.Templates.List(r.Context(), boundTo(r), api.TemplateQuery{Kind: v.Kind, Account: v.Account,
		Search: v.Search, Page: page, PageSize: templatesPerPage})
	if err != nil {
		return err
	}
	v.Templates = got.Templates
	v.Pager = pager{got.PageNumbers, templatesPerPage, "/templates",
		values(map[string]string{"kind": v.Kind, "account": v.Account, "search": v.Search})}
	return u.show(w, r, http.StatusOK, "templates", "Templates", v)
}

// templateView is the page of one template, in one version and locale.
type templateView struct {
	Template api.Template // with the content of the version
	Number   int          // version that is shown
	Current  bool         // it is the current one
	Versions []api.TemplateVersionRow
	Variants []templateVariant
	Locale   string // preview locale
	Locales  []string
	Preview  *api.TemplatePreview // nil if it has errors
	Faults   []fault.Field
	Trouble  string // heading of the errors
	Frame    string // URL of the html of the preview; empty: none
}

// templateVariant is the source of the content, or of one variant.
type templateVariant struct {
	Locale string // empty: the content itself
	Parts  []templatePart
}

type templatePart struct{ Name, Text string }

func (u *UI) template(w http.ResponseWriter, r *http.Request) error {
	id, number, locale, err := templateOf(r)
	if err != nil {
		return err
	}
	t, err := u.Templates.Get(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	all, err := u.Templates.Versions(r.Context(), boundTo(r), id)
	if err != nil {
		return err
	}
	view := templateView{Template: t, Number: t.Version, Versions: all.Versions, Locale: locale}
	if number != 0 && number != t.Version {
		v, err := u.Templates.Version(r.Context(), boundTo(r), id, number)
		if err != nil {
			return err
		}
		view.Template.TemplateDefinition, view.Number = v.TemplateDefinition, v.Version
	}
	view.Current = view.Number == t.Version
	view.read()
	if err := u.previewTemplate(r, &view); err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the preview
	return u.show(w, r, http.StatusOK, "template", t.Name, view)
}

// read fills in the parts of the definition.
func (v *templateView) read() {
	v.Locales = slices.Sorted(maps.Keys(v.Template.Locales))
	if v.Locale != "" && !slices.Contains(v.Locales, v.Locale) {
		v.Locales = append(v.Locales, v.Locale)
	}
	v.Variants = []templateVariant{{Parts: partsOf(v.Template.Content)}}
	for _, locale := range slices.Sorted(maps.Keys(v.Template.Locales)) {
		v.Variants = append(v.Variants, templateVariant{locale, partsOf(v.Template.Locales[locale])})
	}
}

func partsOf(c api.TemplateContent) []templatePart {
	all := []templatePart{{"Subject", c.Subject}, {"Preview text", c.PreviewText}, {"HTML", c.HTML},
		{"Text", c.Text}}
	return slices.DeleteFunc(all, func(p templatePart) bool { return p.Text == "" })
}

// Sample returns the sample as indented JSON, or "".
func (v templateView) Sample() string {
	var b bytes.Buffer
	if err := json.Indent(&b, v.Template.Sample, "", "  "); err != nil {
		return string(v.Template.Sample)
	}
	return b.String()
}

// At returns the URL of the page with another version.
func (v templateView) At(number int) string {
	return templateAddress(v.Template.ID, "", number, v.Locale)
}

// previewTemplate renders the template with its sample. Faults of the template are shown on the page.
func (u *UI) previewTemplate(r *http.Request, v *templateView) error {
	got, err := u.Templates.Preview(r.Context(), boundTo(r), v.Template.ID,
		api.TemplatePreviewRequest{Locale: v.Locale,
			Version: v.Number})
	switch {
	case fault.Is(err, fault.Unprocessable) || fault.Is(err, fault.Invalid):
		f := wordsOf(err)
		v.Trouble, v.Faults = f.Message, f.Fields
		return nil
	case err != nil:
		return err
	}
	v.Preview = &got
	if got.HTML != "" {
		v.Frame = templateAddress(v.Template.ID, "/preview", v.Number, v.Locale)
	}
	return nil
}

// framePolicy allows the html of a template what a mail program does: its styles and embedded images, no
// script and no other file. The frame has its own URL, because srcdoc would have the policy of the page,
// without styles.
const framePolicy = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// templateFrame answers with the html of a template rendered with its sample.
func (u *UI) templateFrame(w http.ResponseWriter, r *http.Request) error {
	id, number, locale, err := templateOf(r)
	if err != nil {
		return err
	}
	got, err := u.Templates.Preview(r.Context(), boundTo(r), id, api.TemplatePreviewRequest{Locale: locale,
		Version: number})
	if err != nil {
		return err
	}
	writeFrame(w, got.HTML)
	return nil
}

// restoreTemplate makes a version the current content again.
func (u *UI) restoreTemplate(w http.ResponseWriter, r *http.Request) error {
	id, _, _, err := templateOf(r)
	if err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	number, err := strconv.Atoi(r.PostForm.Get("version"))
	if err != nil {
		return fault.InvalidField("version", "must be a number")
	}
	to := templateAddress(id, "", 0, "")
	got, err := u.Templates.Restore(r.Context(), boundTo(r), id, number)
	return told(w, r, to, to, err, "The current version is %d, with the content of version %d.", got.Version,
		number)
}

// templateOf returns the template, version (0: the current one) and locale in a URL.
func templateOf(r *http.Request) (id string, number int, locale string, err error) {
	unknown := fault.New(fault.NotFound, "", "There is no such template")
	if id = r.PathValue("id"); !endpointIDs.MatchString(id) {
		return "", 0, "", unknown
	}
	if text := r.URL.Query().Get("version"); text != "" {
		if number, err = strconv.Atoi(text); err != nil || number < 1 {
			return "", 0, "", unknown
		}
	}
	if locale = strings.TrimSpace(r.URL.Query().Get("locale")); len(locale) > 64 {
		return "", 0, "", fault.InvalidField("locale", "is longer than 64 bytes")
	}
	return id, number, locale, nil
}

// templateAddress returns the URL of a page about a template.
func templateAddress(id, what string, number int, locale string) string {
	all := map[string]string{"locale": locale}
	if number != 0 {
		all["version"] = strconv.Itoa(number)
	}
	return address("/templates/"+url.PathEscape(id)+what, values(all))
}
