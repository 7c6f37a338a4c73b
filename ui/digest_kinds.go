package ui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

type digestKindsView struct {
	Account string // whose; empty for all
	Trouble string // why there are none; empty if they were read
	Kinds   []digestKindRow
	Pager   pager
}

type digestKindRow struct {
	api.DigestKindInfo
	Words string // its default schedule; empty if the settings decide
}

// At returns the path of its page.
func (v digestKindRow) At() string { return digestPath("categories", v.Account, v.Category) }

// Titles returns its titles, ordered by language.
func (v digestKindRow) Titles() []pair {
	var all []pair
	for _, tag := range slices.Sorted(maps.Keys(v.Title)) {
		all = append(all, pair{tag, v.Title[tag]})
	}
	return all
}

func (u *UI) kinds(w http.ResponseWriter, r *http.Request) error {
	account, page := filterText(r.URL.Query(), "account"), pageOf(r.URL.Query())
	v, status := digestKindsView{Account: account}, http.StatusOK
	got, err := u.Digests.Kinds.Page(r.Context(), boundTo(r), api.DigestKindQuery{Account: account,
		PageQuery: api.PageQuery{Page: page, PageSize: rowsPerPage}})
	if err != nil {
		if status, v.Trouble, err = troubleOf(err, false); err != nil {
			return err
		}
	}
	for _, kind := range got.Kinds {
		v.Kinds = append(v.Kinds, u.kindRow(kind))
	}
	v.Pager = pager{got.PageNumbers, rowsPerPage, "/digests/categories",
		values(map[string]string{"account": account})}
	return u.show(w, r, status, "digestkinds", "Categories of digests", v)
}

func (u *UI) kindRow(kind api.DigestKindInfo) digestKindRow {
	row := digestKindRow{DigestKindInfo: kind}
	if kind.Preference != nil {
		row.Words = u.Digests.Words(*kind.Preference)
	}
	return row
}

type digestKindView struct {
	formValues
	Kind    *digestKindRow // nil for a new one
	Trouble string         // why it was refused; empty if it wasn’t
}

// mostTitles bounds the languages of a form.
const mostTitles = 50

// titleField returns the name of a field of a title.
func titleField(i int, name string) string { return fmt.Sprintf("title.%d.%s", i, name) }

// titleRow is the title of a category in one language.
type titleRow struct {
	Number         int
	Language, Text string
}

// Field returns the name of one of its fields.
func (r titleRow) Field(name string) string { return titleField(r.Number-1, name) }

// TitleRows returns the titles that the form has, and two empty ones.
func (v digestKindView) TitleRows() (rows []titleRow) {
	for i, free := 0, 0; i < mostTitles && free < 2; i++ {
		row := titleRow{i + 1, v.Get(titleField(i, "language")), v.Get(titleField(i, "text"))}
		if row.Text == "" {
			free++
		}
		rows = append(rows, row)
	}
	return rows
}

// Cadence returns the fields of its preference.
func (v digestKindView) Cadence() cadenceView {
	return cadenceView{Form: v.formValues, Prefix: "preference.",
		Label: "Default schedule", None: "as in the settings"}
}

// showKindForm answers with the form of a category; nil is a new one.
func (u *UI) showKindForm(w http.ResponseWriter, r *http.Request, kind *api.DigestKindInfo,
	f url.Values, refused error) error {
	v, title := digestKindView{formValues: formValues{f}}, "New category"
	if kind != nil {
		row := u.kindRow(*kind)
		v.Kind, title = &row, "Category "+kind.Category
	}
	status, words, err := formTrouble(r, refused)
	if err != nil {
		return err
	}
	v.Trouble = words
	return u.show(w, r, status, "digestkind", title, v)
}

// formTrouble returns the status and the message for a form that was refused. It returns errors that aren’t
// refusals.
func formTrouble(r *http.Request, refused error) (status int, words string, _ error) {
	if refused == nil {
		return http.StatusOK, "", nil
	}
	status = api.StatusOf(wordsOf(refused).Kind)
	if status >= http.StatusInternalServerError {
		return 0, "", refused
	}
	noteOutcome(r, refused)
	return status, sentence(refused), nil
}

func (u *UI) newKind(w http.ResponseWriter, r *http.Request) error {
	in := r.URL.Query()
	return u.showKindForm(w, r, nil, values(map[string]string{"account": filterText(in, "account"),
		"category": filterText(in, "category")}), nil)
}

func (u *UI) kind(w http.ResponseWriter, r *http.Request) error {
	of, category := digestOf(r)
	info, err := u.Digests.Kinds.Get(r.Context(), boundTo(r), of, category)
	if err != nil {
		return err
	}
	return u.showKindForm(w, r, &info, kindValues(info), nil)
}

func kindValues(k api.DigestKindInfo) url.Values {
	f := values(map[string]string{"category": k.Category, "account": k.Account, "template": k.Template,
		"lane": string(k.Lane), "version": strconv.Itoa(k.Version)})
	for i, tag := range slices.Sorted(maps.Keys(k.Title)) {
		f.Set(titleField(i, "language"), tag)
		f.Set(titleField(i, "text"), k.Title[tag])
	}
	if k.Required {
		f.Set("required", "on")
	}
	setCadence(f, "preference.", k.Preference)
	return f
}

// readKind returns the category settings of a form. Its error names the fields that it can't read; package
// digest checks the others.
func readKind(f url.Values) (api.DigestKind, error) {
	in := cadenceReader{form: f}
	k := api.DigestKind{Category: strings.TrimSpace(f.Get("category")), Title: map[string]string{},
		Required: f.Has("required"), Template: strings.TrimSpace(f.Get("template")),
		Lane: api.Lane(f.Get("lane")), Preference: in.read("preference.", "preference")}
	for i := range mostTitles {
		tag := strings.TrimSpace(f.Get(titleField(i, "language")))
		title := strings.TrimSpace(f.Get(titleField(i, "text")))
		if title == "" {
			continue
		}
		tag = cmp.Or(tag, "en")
		if k.Title[tag] != "" {
			in.wrong.Add("title."+tag, "is there twice")
		}
		k.Title[tag] = title
	}
	return k, fault.InvalidFields(in.wrong)
}

func (u *UI) createKind(w http.ResponseWriter, r *http.Request) error {
	k, err := readKind(r.PostForm)
	if err != nil {
		return u.showKindForm(w, r, nil, r.PostForm, err)
	}
	k.Account = digestFormAccount(r)
	made, err := u.Digests.Kinds.Create(r.Context(), boundTo(r), k)
	if err != nil {
		return u.showKindForm(w, r, nil, r.PostForm, err)
	}
	return done(w, r, address("/digests/categories", values(map[string]string{"account": made.Account})),
		"Category %s added.", made.Category)
}

func (u *UI) changeKind(w http.ResponseWriter, r *http.Request) error {
	of, category := digestOf(r)
	old, err := u.Digests.Kinds.Get(r.Context(), boundTo(r), of, category)
	if err != nil {
		return err
	}
	k, err := readKind(r.PostForm)
	version, wrong := readVersion(r.PostForm)
	if err == nil {
		err = wrong
	}
	if err == nil {
		p := api.DigestKindPatch{Account: old.Account, Version: version, Title: k.Title, Preference: &k.Preference,
			Required: &k.Required, Template: &k.Template, Lane: &k.Lane}
		_, err = u.Digests.Kinds.Update(r.Context(), boundTo(r), category, p)
	}
	if err != nil {
		return u.showKindForm(w, r, &old, r.PostForm, err)
	}
	return done(w, r, digestPath("categories", old.Account, category), "Category saved.")
}

func (u *UI) deleteKind(w http.ResponseWriter, r *http.Request) error {
	of, category := digestOf(r)
	if err := u.Digests.Kinds.Delete(r.Context(), boundTo(r), of, category); err != nil {
		return err
	}
	return done(w, r, address("/digests/categories", values(map[string]string{"account": of.Account})),
		"The settings of category %s were deleted. Its events stay.", category)
}
