package ui

import (
	"context"
	"net/http"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/api/fault"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/people"
)

// linkView is the data of the page of a one-time link.
type linkView struct {
	Secret string // of the link
	First  bool   // it makes the first admin
	Name   string
	Least  int // characters of a password
	Wrong  []fault.Field
}

// linkPage shows the form of a one-time link. Only the form uses the link up: programs that look at links in
// mail follow them, and post nothing.
func (u *UI) linkPage(w http.ResponseWriter, r *http.Request) error {
	secret := r.URL.Query().Get("t")
	l, err := u.People.Link(r.Context(), secret, time.Now())
	if err != nil {
		return err
	}
	return u.showLink(w, r, http.StatusOK, linkView{Secret: secret, First: l.Name == "", Name: l.Name})
}

func (u *UI) showLink(w http.ResponseWriter, r *http.Request, status int, v linkView) error {
	v.Least = people.MinPassword
	title := "Set your password"
	if v.First {
		title = "Make the first admin"
	}
	return u.show(w, r, status, "link", title, v)
}

// useLink sets the password of the link's person, or makes the first admin.
func (u *UI) useLink(w http.ResponseWriter, r *http.Request) error {
	if err := u.ownPage(r); err != nil {
		return err
	}
	if err := parseForm(w, r); err != nil {
		return err
	}
	secret := r.PostForm.Get("t")
	l, err := u.People.Link(r.Context(), secret, time.Now())
	if err != nil {
		return err
	}
	v := linkView{Secret: secret, First: l.Name == "", Name: l.Name}
	if v.First {
		v.Name = r.PostForm.Get("name")
	}
	grant := &access.Grant{Person: v.Name, Name: v.Name}
	r = r.WithContext(context.WithValue(r.Context(), grantKey{}, grant))
	return u.record(w, r, "POST /link", api.AuditObject{Kind: "person", ID: v.Name}, nil,
		func(w http.ResponseWriter, r *http.Request) error {
			password, err := newPassword(r)
			if err == nil {
				_, err = u.People.Use(r.Context(), secret, v.Name, password, time.Now())
			}
			if f := wordsOf(err); err != nil && len(f.Fields) > 0 {
				noteOutcome(r, err)
				v.Wrong = f.Fields
				return u.showLink(w, r, http.StatusBadRequest, v)
			}
			if err != nil {
				return err
			}
			return done(w, r, "/login", "The password is set. Log in with it.")
		})
}

// newPassword returns the new password of a form, which has it twice.
func newPassword(r *http.Request) (string, error) {
	password := r.PostForm.Get("newPassword")
	if password != r.PostForm.Get("newPassword2") {
		return "", fault.InvalidField("password", "is not the same both times")
	}
	return password, nil
}
