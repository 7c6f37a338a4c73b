package ui

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
)

// suppressionReasons are the choices of the form.
var suppressionReasons = []string{"manual", "unsubscribe", "hard_bounce", "spam_report"}

// suppressionWords are the reasons as pages show them.
var suppressionWords = map[string]string{"manual": "added by hand", "unsubscribe": "unsubscribed",
	"hard_bounce": "hard bounce", "spam_report": "spam complaint", "erased": "erased"}

type suppressionsView struct {
	Q        string                // the search: an address or a domain
	Found    *api.SuppressionFound // all suppressions of Q, if it is an address
	Verdicts []string              // their effects
	Query    api.SuppressionQuery
	Page     api.SuppressionPage
	Reasons  []string
	cursorPager
	Export string // URL of the CSV file of these rows
	Wrong  string // why Q is invalid
	Add    form
}

// suppressionForm returns the form of a new entry. back is the list to return to.
func suppressionForm(back string) form {
	return form{Action: "/suppressions/add", Back: back, Save: "Add suppression",
		Hidden: map[string]string{"back": back},
		Twins:  "POST /v1/suppressions · postroom suppressions add",
		Groups: []formGroup{{Legend: "Add a suppression", Folded: true, Fields: []formField{
			{Name: "whom", Label: "Address, or @ and a domain", Most: 512, Required: true},
			{Name: "reason", Label: "Reason", Kind: "choice", Choices: suppressionReasons,
				Hint: "An unsubscribe stops bulk emails and emails of lists. The other reasons stop all emails."},
			{Name: "account", Label: "Account", Placeholder: "all accounts"},
			{Name: "list", Label: "List of the account", Placeholder: "all its emails"},
			{Name: "expires", Label: "Last day (UTC)", Kind: "date", Hint: "Leave empty to keep it permanently."},
			{Name: "note", Label: "Note", Most: 500},
		}}}}
}

// Any reports whether there is a filter.
func (v suppressionsView) Any() bool {
	q := v.Query
	return v.Q != "" || q.Account != "" || q.List != "" || q.Scope != "" || q.Reason != ""
}

// suppressions shows the suppression list, or all suppressions of an address.
func (u *UI) suppressions(w http.ResponseWriter, r *http.Request) error {
	return u.showSuppressions(w, r, r.URL, url.Values{"whom": {strings.TrimSpace(r.URL.Query().Get("q"))}}, nil)
}

// showSuppressions shows the list of a URL, and the form to add an entry as it was filled in.
func (u *UI) showSuppressions(w http.ResponseWriter, r *http.Request, list *url.URL,
	typed url.Values, refused error) error {
	view, err := readSuppressions(list.Query())
	if err != nil {
		return err
	}
	view.Add = suppressionForm(list.RequestURI())
	status, err := view.Add.refuse(r, typed, refused)
	if err != nil {
		return err
	}
	if strings.LastIndexByte(view.Q, '@') > 0 {
		found, err := u.Suppressions.Lookup(r.Context(), boundTo(r), view.Q)
		if fault.Is(err, fault.Invalid) {
			view.Wrong = wordsOf(err).Fields[0].Message
			return u.show(w, r, http.StatusBadRequest, "suppressions", "Suppressions", view)
		}
		if err != nil {
			return err
		}
		view.Found, view.Verdicts = &found, suppressionVerdicts(found.Suppressions)
		view.Page.Suppressions = found.Suppressions
		return u.show(w, r, status, "suppressions", "Suppressions", view)
	}
	view.Query.Domain = strings.TrimPrefix(view.Q, "@")
	view.Page, err = u.Suppressions.Query(r.Context(), boundTo(r), view.Query)
	if err != nil {
		return err
	}
	slices.SortStableFunc(view.Page.Suppressions, func(a, b api.Suppression) int {
		return b.Created.Compare(a.Created)
	})
	at := func(cursor string) string { return view.at("/suppressions", cursor) }
	view.cursorPager = cursors(at, view.Query.Cursor, view.Page.Cursor)
	view.Export = view.at("/v1/suppressions/export", "")
	return u.show(w, r, status, "suppressions", "Suppressions", view)
}

func readSuppressions(v url.Values) (suppressionsView, error) {
	view := suppressionsView{Q: strings.TrimSpace(v.Get("q")), Reasons: suppressionReasons}
	for _, value := range v {
		if len(strings.Join(value, "")) > 1024 {
			return view, fault.New(fault.Invalid, "", "The address is too long")
		}
	}
	view.Query = api.SuppressionQuery{Account: strings.TrimSpace(v.Get("account")),
		List: strings.TrimSpace(v.Get("list")), Scope: v.Get("scope"), Reason: v.Get("reason"),
		CursorQuery: api.CursorQuery{Cursor: v.Get("cursor"), PageSize: rowsPerPage}}
	return view, nil
}

// at returns the URL of the same rows at another path or cursor.
func (v suppressionsView) at(path, cursor string) string {
	q := v.Query
	all := map[string]string{"account": q.Account, "list": q.List, "scope": q.Scope, "reason": q.Reason,
		"cursor": cursor}
	if path == "/suppressions" {
		all["q"] = v.Q
	} else {
		all["domain"] = q.Domain
	}
	return address(path, values(all))
}

func suppressionVerdicts(list []api.Suppression) []string {
	var all []string
	seen := map[string]bool{}
	for _, s := range list {
		line := "All emails to it are stopped"
		switch {
		case s.List != "":
			line = "Emails of list " + s.List + " to it are stopped"
		case s.Reason == "unsubscribe":
			line = "Bulk emails and emails of lists to it are stopped; other transactional emails are sent"
		}
		if s.Account != "" {
			line += ", for account " + s.Account
		}
		if !s.Expired && !seen[line] {
			seen[line] = true
			all = append(all, line+".")
		}
	}
	return all
}

func (u *UI) addSuppression(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := &formReader{Values: r.PostForm}
	n := api.NewSuppression{Reason: f.Get("reason"), SuppressionScope: scopeOfForm(f.Values), Source: "page",
		Response: f.Get("note"), Expires: f.day("expires")}
	n.Email, n.Domain = whomOf(f.Get("whom"))
	back := local(f.Get("back"))
	var answer api.SuppressionsAdded
	err := fault.InvalidFields(f.wrong)
	if err == nil {
		answer, err = u.Suppressions.Put(r.Context(), boundTo(r), []api.NewSuppression{n})
	}
	if err != nil {
		list, wrong := url.Parse(back)
		if wrong != nil || list.Path != "/suppressions" {
			list = &url.URL{Path: "/suppressions"}
		}
		return u.showSuppressions(w, r, list, f.Values, entryFault(err))
	}
	if answer.Added == 0 {
		return done(w, r, back, "%s was already suppressed.", f.Get("whom"))
	}
	return done(w, r, back, "%s suppressed.", f.Get("whom"))
}

// entryFault names the fields of the only entry of a request as the form does.
func entryFault(err error) error {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	fields := slices.Clone(f.Fields)
	for i := range fields {
		_, name, _ := strings.Cut(fields[i].Key, ".")
		switch name {
		case "email", "domain":
			name = "whom"
		case "":
			continue
		}
		fields[i].Key = name
	}
	named := *f
	named.Fields = fields
	return &named
}

func (u *UI) removeSuppression(w http.ResponseWriter, r *http.Request) error {
	if err := parseForm(w, r); err != nil {
		return err
	}
	f := r.PostForm
	of := scopeOfForm(f)
	removal := api.SuppressionRemoval{Email: f.Get("email"), Domain: f.Get("domain"), Reason: f.Get("reason"),
		Account: of.Account, List: of.List}
	answer, err := u.Suppressions.Delete(r.Context(), boundTo(r), removal)
	back, who := local(f.Get("back")), f.Get("email")+f.Get("domain")
	switch {
	case err != nil:
		return undone(w, r, back, err)
	case !answer.Deleted:
		return done(w, r, back, "That suppression of %s was already removed.", who)
	}
	u.log.InfoContext(r.Context(), "suppression removed from the pages", "reason", removal.Reason, "account",
		removal.Account, "list", removal.List)
	return done(w, r, back, "Suppression of %s removed.", who)
}

func scopeOfForm(f url.Values) api.SuppressionScope {
	return api.SuppressionScope{Account: strings.TrimSpace(f.Get("account")),
		List: strings.TrimSpace(f.Get("list"))}
}

// whomOf returns an address, or a domain for a text without local part.
func whomOf(text string) (email, domain string) {
	text = strings.TrimSpace(text)
	if strings.LastIndexByte(text, '@') > 0 {
		return text, ""
	}
	return "", strings.TrimPrefix(text, "@")
}

// importSuppressions streams the file of a form into an import, and redirects to the page of its result.
func (u *UI) importSuppressions(w http.ResponseWriter, r *http.Request) error {
	return upload(w, r, func(f url.Values, _ string, file io.Reader) error {
		of := scopeOfForm(f)
		got, err := u.Suppressions.Import(r.Context(), boundTo(r), file, api.SuppressionImportOptions{
			Reason: f.Get("reason"), Account: of.Account, List: of.List})
		if err != nil {
			return undone(w, r, "/suppressions", err)
		}
		return redirect(w, r, "/suppressions/imports/"+url.PathEscape(got.ID))
	})
}

func (u *UI) suppressionImport(w http.ResponseWriter, r *http.Request) error {
	got, err := u.Suppressions.Progress(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "suppressionimport", "Import of suppressions", got)
}
