package ui

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server"
)

// peopleView is the data of the page of users.
type peopleView struct {
	People []api.PersonInfo
	Pager  pager
	Form   form
}

// personForm returns the form for a new user. With a sign-on, users can sign in there instead.
func personForm(signOn *SignOn) form {
	f := form{Action: "/people", Back: "/people", Save: "Invite", Twins: "POST /v1/people · postroom api createPerson",
		Groups: []formGroup{{Legend: "Invite a user", Fields: []formField{
			{Name: "person", Label: "Name", Most: 128, Required: true},
			{Name: "role", Label: "Role", Kind: "choice", Choices: []string{"viewer", "operator", "admin"},
				Hint: "Viewers can't make changes. Operators can do everything except manage people, tokens, " +
					"settings and the audit log. You get a link to send to the user, who sets a password with it."},
			{Name: "accounts", Label: "Accounts, separated by spaces", Most: 4096,
				Placeholder: "all"},
		}}}}
	if signOn != nil {
		f.Groups[0].Fields = append(f.Groups[0].Fields, formField{Name: "external", Kind: "check",
			Label: "signs in with " + signOn.Name + ", under this name"})
	}
	return f
}

func (u *UI) people(w http.ResponseWriter, r *http.Request) error {
	return u.showPeople(w, r, url.Values{"external": {"on"}}, nil)
}

// showPeople shows the list, and the form for a new user with the entered values.
func (u *UI) showPeople(w http.ResponseWriter, r *http.Request, typed url.Values,
	refused error) error {
	page := pageOf(r.URL.Query())
	got, err := u.People.List(r.Context(), page, rowsPerPage)
	if err != nil {
		return err
	}
	view := peopleView{People: got.People, Form: personForm(u.opts.SignOn)}
	status, err := view.Form.refuse(r, typed, refused)
	if err != nil {
		return err
	}
	view.Pager = pager{got.PageNumbers, rowsPerPage, "/people", nil}
	return u.show(w, r, status, "people", "People", view)
}

type personView struct {
	api.PersonInfo
	Link string // new invitation; empty: none
	Ends time.Time
	Form form
}

func personChange(p api.PersonInfo) form {
	f := form{Action: "/people/" + p.Person, Back: "/people", Save: "Save",
		Twins: "PATCH /v1/people/" + p.Person + " · postroom api updatePerson " + p.Person,
		Groups: []formGroup{{Legend: "Access of " + p.Person, Fields: []formField{
			{Name: "role", Label: "Role", Kind: "choice", Choices: []string{"viewer", "operator", "admin"}},
			{Name: "accounts", Label: "Accounts, separated by spaces", Most: 4096,
				Placeholder: "all"},
			{Name: "disabled", Label: "can't sign in", Kind: "check", Hint: "A change ends the user's sessions."},
		}}}}
	v := values(map[string]string{"role": string(p.Role), "accounts": strings.Join(p.Accounts, " ")})
	setOn(v, "disabled", p.Disabled)
	f.fill(v)
	return f
}

func (u *UI) person(w http.ResponseWriter, r *http.Request) error {
	p, err := u.People.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return u.show(w, r, http.StatusOK, "person", p.Person, personView{PersonInfo: p, Form: personChange(p)})
}

func (u *UI) createPerson(w http.ResponseWriter, r *http.Request) error {
	req := api.PersonRequest{Person: r.PostForm.Get("person"), Role: api.Role(r.PostForm.Get("role")),
		Accounts: strings.Fields(r.PostForm.Get("accounts"))}
	external := u.opts.SignOn != nil && r.PostForm.Has("external")
	if external {
		req.Identity = &api.Identity{Issuer: u.opts.SignOn.URL}
	}
	p, err := u.People.Create(r.Context(), req, time.Now())
	switch {
	case err != nil:
		return u.showPeople(w, r, r.PostForm, err)
	case external:
		return done(w, r, "/people/"+p.Person, "Added. %s signs in at %s.", p.Person, req.Identity.Issuer)
	}
	return u.linked(w, r, p)
}

func (u *UI) linkPerson(w http.ResponseWriter, r *http.Request) error {
	p, err := u.People.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	return u.linked(w, r, p)
}

// linked shows a new one-time link of a person in the answer itself: it must be nowhere else.
func (u *UI) linked(w http.ResponseWriter, r *http.Request, p api.PersonInfo) error {
	secret, ends, err := u.People.NewLink(r.Context(), p.Person, time.Now())
	if err != nil {
		return undone(w, r, "/people", err)
	}
	service := cmp.Or(u.Settings.Current().ServiceURL, baseOf(r))
	return u.show(w, r, http.StatusOK, "person", p.Person, personView{PersonInfo: p, Ends: ends,
		Link: server.LinkURL(service, secret), Form: personChange(p)})
}

func (u *UI) updatePerson(w http.ResponseWriter, r *http.Request) error {
	role, accounts := api.Role(r.PostForm.Get("role")), strings.Fields(r.PostForm.Get("accounts"))
	_, refused := u.People.Update(r.Context(), r.PathValue("id"), api.PersonPatch{Role: &role,
		Accounts: &accounts, Disabled: new(r.PostForm.Has("disabled"))}, time.Now())
	if refused == nil {
		return u.after(w, r, nil, "Changed. The sessions of %s have ended.")
	}
	p, err := u.People.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	view := personView{PersonInfo: p, Form: personChange(p)}
	status, err := view.Form.refuse(r, r.PostForm, refused)
	if err != nil {
		return err
	}
	return u.show(w, r, status, "person", p.Person, view)
}

// after shows the result of a change of a person, on the page of the person.
func (u *UI) after(w http.ResponseWriter, r *http.Request, err error, said string) error {
	name := r.PathValue("id")
	return told(w, r, "/people/"+name, "/people/"+name, err, said, name)
}

func (u *UI) signOut(w http.ResponseWriter, r *http.Request) error {
	_, err := u.People.EndSessions(r.Context(), r.PathValue("id"), time.Now())
	return u.after(w, r, err, "The sessions of %s have ended.")
}

func (u *UI) resetTOTP(w http.ResponseWriter, r *http.Request) error {
	_, err := u.People.ResetTOTP(r.Context(), r.PathValue("id"), time.Now())
	return u.after(w, r, err, "%s needs no code any more, and can set up another app.")
}

func (u *UI) deletePerson(w http.ResponseWriter, r *http.Request) error {
	deleted, err := u.People.Delete(r.Context(), r.PathValue("id"))
	return removed(w, r, "/people", "/people", deleted, err,
		r.PathValue("id")+" is deleted, and the sessions have ended.")
}
