package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/newsletter/audience"
)

type listsView struct {
	Account string // whose lists; empty for all
	Lists   []api.ListInfo
	Pager   pager
}

func (u *UI) lists(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	account, err := ownAccount(r, strings.TrimSpace(q.Get("account")))
	if err != nil {
		return err
	}
	page := pageOf(q)
	got, err := u.Audience.Lists.Page(r.Context(), boundTo(r), api.ListQuery{Account: account,
		PageQuery: api.PageQuery{Page: page, PageSize: rowsPerPage}})
	if err != nil {
		return err
	}
	v := listsView{Account: account, Lists: got.Lists}
	v.Pager = pager{got.PageNumbers, rowsPerPage, "/lists", values(map[string]string{"account": account})}
	return u.show(w, r, http.StatusOK, "lists", "Lists", v)
}

type listView struct {
	api.ListInfo
	Mails []listMailView
}

type listMailView struct {
	Name, Title, Hint string
	Mail              api.ListMail
}

func (u *UI) list(w http.ResponseWriter, r *http.Request) error {
	list, err := u.Audience.Lists.Get(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	mails := []listMailView{
		{"confirmation", "Confirmation",
			"Email with the confirmation link, {{confirmUrl}}. Leave empty to use the built-in one.",
			*cmp.Or(list.Confirmation, &api.ListMail{})},
		{"welcome", "Welcome", "Email after a subscription is complete. Leave empty to send none.",
			*cmp.Or(list.Welcome, &api.ListMail{})},
	}
	return u.show(w, r, http.StatusOK, "list", list.Name, listView{list, mails})
}

type listFormView struct {
	List    api.ListInfo
	Form    api.ListForm
	Trouble string // why it has none
}

func (u *UI) listForm(w http.ResponseWriter, r *http.Request) error {
	list, err := u.Audience.Lists.Get(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	v := listFormView{List: list}
	v.Form, err = u.OptIn.Form(r.Context(), boundTo(r), list.ListID)
	switch {
	case fault.Is(err, fault.Conflict), fault.Is(err, fault.Unprocessable):
		v.Trouble = sentence(err)
	case err != nil:
		return err
	}
	w.Header().Set("Content-Security-Policy", policy+"; frame-src 'self'") // the form
	return u.show(w, r, http.StatusOK, "listform", "Form for "+list.Name, v)
}

// listFormFrame answers with the form of a list as other pages embed it.
func (u *UI) listFormFrame(w http.ResponseWriter, r *http.Request) error {
	form, err := u.OptIn.Form(r.Context(), boundTo(r), r.PathValue("id"))
	if err != nil {
		return err
	}
	writeFrame(w, form.HTML)
	return nil
}

func (u *UI) createList(w http.ResponseWriter, r *http.Request) error {
	f := r.PostForm
	made, err := u.Audience.Lists.Create(r.Context(), boundTo(r), api.List{
		ListID: strings.TrimSpace(f.Get("list")), Account: strings.TrimSpace(f.Get("account")),
		Name: strings.TrimSpace(f.Get("name")), Description: strings.TrimSpace(f.Get("description")),
		OptIn: f.Get("optIn"), Public: f.Has("public")})
	if err != nil {
		return undone(w, r, "/lists", err)
	}
	noteMade(r, made)
	return done(w, r, "/lists/"+made.ListID, "List %s created.", made.Name)
}

func (u *UI) changeList(w http.ResponseWriter, r *http.Request) error {
	f, at := r.PostForm, "/lists/"+url.PathEscape(r.PathValue("id"))
	version, err := readVersion(f)
	if err != nil {
		return undone(w, r, at, err)
	}
	text := func(name string) *string { return new(strings.TrimSpace(f.Get(name))) }
	_, err = u.Audience.Lists.Update(r.Context(), boundTo(r), r.PathValue("id"), api.ListPatch{
		Version: version, Name: text("name"), Description: text("description"), OptIn: text("optIn"),
		Public: new(f.Has("public")), NoIndex: new(f.Has("noindex")), PendingRetention: text("pendingRetention"),
		Confirmation: readListMail(f, "confirmation"), Welcome: readListMail(f, "welcome")})
	return told(w, r, at, at, err, "List saved.")
}

func readVersion(f url.Values) (*int, error) {
	n, err := strconv.Atoi(f.Get("version"))
	if err != nil {
		return nil, fault.InvalidField("version", "must be a number")
	}
	return &n, nil
}

func readListMail(f url.Values, name string) *api.ListMail {
	return &api.ListMail{Template: strings.TrimSpace(f.Get(name + ".template")),
		Subject: strings.TrimSpace(f.Get(name + ".subject")), Text: strings.TrimSpace(f.Get(name + ".text")),
		HTML: strings.TrimSpace(f.Get(name + ".html"))}
}

func (u *UI) deleteList(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.Audience.Lists.Delete(r.Context(), boundTo(r), r.PathValue("id"))
	return removed(w, r, "/lists", "/lists", deleted, err,
		"List "+r.PathValue("id")+" deleted. Its subscribers are still there.")
}

// audienceOf returns the account whose subscribers a page shows.
func audienceOf(r *http.Request, asked string) (string, error) {
	account, err := ownAccount(r, strings.TrimSpace(asked))
	return cmp.Or(account, audience.DefaultAccount), err
}
