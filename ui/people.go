package ui

import (
	"net/http"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/proxies"
)

// peopleView is the data of the page of persons.
type peopleView struct {
	People []api.PersonInfo
	Pager  pager
	SignOn *SignOn // where persons may log in instead; nil: nowhere
}

func (u peoplePages) people(w http.ResponseWriter, r *http.Request) error {
	page := pageOf(r.URL.Query())
	got, err := u.People.List(r.Context(), page, rowsPerPage)
	if err != nil {
		return err
	}
	view := peopleView{People: got.People, SignOn: u.opts.SignOn}
	view.Pager = pager{Page: page, Pages: got.Pages, Total: got.Total, Size: rowsPerPage, path: "/people"}
	return u.show(w, r, http.StatusOK, "people", "People", view)
}

// personView is the data of the page of a person.
type personView struct {
	api.PersonInfo
	Link string // that was made just now; empty: none
	Ends time.Time
}

func (u peoplePages) person(w http.ResponseWriter, r *http.Request) error {
	p, err := u.People.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "person", p.Person, personView{PersonInfo: p})
}

func (u peoplePages) create(w http.ResponseWriter, r *http.Request) error {
	req := api.PersonRequest{Person: r.PostForm.Get("person"), Role: api.Role(r.PostForm.Get("role")),
		Accounts: strings.Fields(r.PostForm.Get("accounts"))}
	external := u.opts.SignOn != nil && r.PostForm.Has("external")
	if external {
		req.Identity = &api.Identity{Issuer: u.opts.SignOn.URL}
	}
	p, err := u.People.Create(r.Context(), req, time.Now())
	switch {
	case err != nil:
		return undone(w, r, "/people", err)
	case external:
		return done(w, r, "/people/"+p.Person, "Added. %s logs in at %s.", p.Person, req.Identity.Issuer)
	}
	return u.linked(w, r, p)
}

func (u peoplePages) link(w http.ResponseWriter, r *http.Request) error {
	p, err := u.People.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return u.linked(w, r, p)
}

// linked shows a new one-time link of a person in the answer itself: it must be nowhere else.
func (u peoplePages) linked(w http.ResponseWriter, r *http.Request, p api.PersonInfo) error {
	secret, ends, err := u.People.NewLink(r.Context(), p.Person, time.Now())
	if err != nil {
		return undone(w, r, "/people", err)
	}
	service := u.Settings.Current().ServiceURL
	if service == "" {
		service = "http://" + r.Host
		if proxies.Of(r).TLS {
			service = "https://" + r.Host
		}
	}
	return u.show(w, r, http.StatusOK, "person", p.Person, personView{PersonInfo: p, Ends: ends,
		Link: u.LinkURL(service, secret)})
}

func (u peoplePages) update(w http.ResponseWriter, r *http.Request) error {
	role, accounts := api.Role(r.PostForm.Get("role")), strings.Fields(r.PostForm.Get("accounts"))
	_, err := u.People.Update(r.Context(), r.PathValue("id"), api.PersonPatch{Role: &role, Accounts: &accounts,
		Disabled: new(r.PostForm.Has("disabled"))}, time.Now())
	return u.after(w, r, err, "Changed. The sessions of %s have ended.")
}

// after shows the result of a change of a person, on the page of the person.
func (u peoplePages) after(w http.ResponseWriter, r *http.Request, err error, said string) error {
	name := r.PathValue("id")
	if err != nil {
		return undone(w, r, "/people/"+name, err)
	}
	return done(w, r, "/people/"+name, said, name)
}

func (u peoplePages) signOut(w http.ResponseWriter, r *http.Request) error {
	_, err := u.People.EndSessions(r.Context(), r.PathValue("id"), time.Now())
	return u.after(w, r, err, "The sessions of %s have ended.")
}

func (u peoplePages) resetTOTP(w http.ResponseWriter, r *http.Request) error {
	_, err := u.People.ResetTOTP(r.Context(), r.PathValue("id"), time.Now())
	return u.after(w, r, err, "%s needs no code any more, and can set up another app.")
}

func (u peoplePages) remove(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.People.Delete(r.Context(), r.PathValue("id"))
	switch {
	case err != nil:
		return undone(w, r, "/people", err)
	case !deleted:
		return done(w, r, "/people", "There was no such person.")
	}
	return done(w, r, "/people", "%s is deleted, and the sessions have ended.", r.PathValue("id"))
}
