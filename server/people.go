package server

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/server/access"
	"github.com/postroom/postroom/server/people"
	"github.com/postroom/postroom/server/settings"
)

type peopleRoutes struct {
	people   *people.People
	sessions *access.Access
	settings *settings.Settings
}

type personInput struct {
	Person string `path:"person" maxLength:"128" doc:"Name of the user"`
}

func (in personInput) id() string { return in.Person }

func (p peopleRoutes) createPerson(ctx context.Context, in *body[api.PersonRequest]) (api.PersonLink,
	error) {
	made, err := p.people.Create(ctx, in.Body, time.Now())
	if err != nil || made.Identity != nil {
		return api.PersonLink{Person: made.Person}, err
	}
	return p.link(ctx, made.Person)
}

type updatePersonInput struct {
	personInput
	Body api.PersonPatch
}

func (p peopleRoutes) updatePerson(ctx context.Context, in *updatePersonInput) (api.PersonInfo, error) {
	return p.people.Update(ctx, in.Person, in.Body, time.Now())
}

func (p peopleRoutes) link(ctx context.Context, name string) (api.PersonLink, error) {
	secret, ends, err := p.people.NewLink(ctx, name, time.Now())
	return api.PersonLink{Person: name, Link: LinkURL(p.settings.Current().ServiceURL, secret), Expires: ends},
		err
}

// LinkURL returns the URL of the page of a one-time link; a path if no service URL is known.
func LinkURL(service, secret string) string {
	return strings.TrimSuffix(service, "/") + "/link?" + url.Values{"t": {secret}}.Encode()
}

func (p peopleRoutes) signOutPerson(ctx context.Context, in *personInput) (api.PersonInfo, error) {
	return p.people.EndSessions(ctx, in.Person, time.Now())
}

func (p peopleRoutes) resetTOTP(ctx context.Context, in *personInput) (api.PersonInfo, error) {
	return p.people.ResetTOTP(ctx, in.Person, time.Now())
}

// The routes below are about the person of the session.

func (p peopleRoutes) getMe(ctx context.Context, _ *noInput) (api.Me, error) {
	g := grantOf(ctx)
	person, err := p.people.Get(ctx, g.Person)
	return api.Me{PersonInfo: person, Account: g.Account, Session: g.Session}, err
}

func (p peopleRoutes) changePassword(ctx context.Context, in *body[api.PasswordChange]) (api.Me, error) {
	return p.renewed(ctx, p.people.ChangePassword(ctx, grantOf(ctx).Person, in.Body, time.Now()))
}

// renewed keeps the request's session after a change that ended its person's sessions.
func (p peopleRoutes) renewed(ctx context.Context, err error) (api.Me, error) {
	if err == nil {
		err = p.sessions.Renew(ctx, grantOf(ctx), time.Now())
	}
	if err != nil {
		return api.Me{}, err
	}
	return p.getMe(ctx, nil)
}

func (p peopleRoutes) enrolTOTP(ctx context.Context, in *body[api.PasswordProof]) (api.TOTPSecret, error) {
	return p.people.Enrol(ctx, grantOf(ctx).Person, in.Body.Password, time.Now())
}

func (p peopleRoutes) confirmTOTP(ctx context.Context, in *body[api.TOTPCode]) (api.RecoveryCodes, error) {
	codes, err := p.people.Confirm(ctx, grantOf(ctx).Person, in.Body.Code, time.Now())
	if err == nil {
		err = p.sessions.Renew(ctx, grantOf(ctx), time.Now())
	}
	return codes, err
}

func (p peopleRoutes) removeTOTP(ctx context.Context, in *body[api.PasswordProof]) (api.Me, error) {
	return p.renewed(ctx, p.people.RemoveTOTP(ctx, grantOf(ctx).Person, in.Body.Password, time.Now()))
}

func (p peopleRoutes) chooseAccount(ctx context.Context, in *body[api.AccountChoice]) (api.Me, error) {
	if err := p.sessions.SwitchAccount(ctx, grantOf(ctx), in.Body.Account, time.Now()); err != nil {
		return api.Me{}, err
	}
	me, err := p.getMe(ctx, nil)
	me.Account = in.Body.Account
	return me, err
}

// sessionsOf returns whose sessions somebody may see and end; empty means everybody's.
func sessionsOf(g *access.Grant) string {
	if g.Allows(api.ScopeAdmin) {
		return ""
	}
	return g.Person
}

func (p peopleRoutes) listSessions(ctx context.Context, in *api.SessionQuery) (api.Sessions, error) {
	g := grantOf(ctx)
	of := strings.ToLower(in.Person)
	if own := sessionsOf(g); own != "" {
		if of != "" && of != own {
			return api.Sessions{}, nil
		}
		of = own
	}
	all, err := p.sessions.Sessions(ctx, of, g, time.Now())
	return api.Sessions{Sessions: all}, err
}

type sessionInput struct {
	ID string `path:"id" maxLength:"64" doc:"ID of the session"`
}

func (p peopleRoutes) endSession(ctx context.Context, in *sessionInput) (api.Deleted, error) {
	ended, err := p.sessions.EndSession(ctx, in.ID, sessionsOf(grantOf(ctx)))
	return api.Deleted{Deleted: ended}, err
}
