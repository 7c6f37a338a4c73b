package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func personVerbs() []verb {
	return []verb{
		{name: "list", help: "List persons (the default).",
			run: list(api.ListPeople, "no persons: postroom person create makes one", peopleGrid)},
		{name: "show", help: "Show a person.", run: show(api.GetPerson, personFacts)},
		{name: "create", help: "Add a person. Prints a one-time link by which the person sets a password.",
			run: &personCreateCmd{}},
		{name: "change", help: "Change role, accounts, or whether the person may log in. Ends the sessions.",
			run: &personChangeCmd{}},
		{name: "link", help: "Make a one-time link by which a person sets a new password.", run: &personLinkCmd{}},
		{name: "sign-out", help: "End the sessions of a person.",
			run: &personDoCmd{route: api.SignOutPerson, said: "the sessions of %s have ended"}},
		{name: "reset-totp", help: "Remove the second factor of a person who lost it.",
			run: &personDoCmd{route: api.ResetTOTP, said: "%s needs no code any more"}},
		{name: "delete", help: "Delete a person. Ends the sessions.",
			run: &deleteCmd[api.Deleted]{route: api.DeletePerson, what: "person"}},
	}
}

func peopleGrid(list []api.PersonInfo, now time.Time) grid {
	g := newGrid("name", "role", "accounts", "state", "second factor", "last login", "from")
	for _, p := range list {
		g.add(p.Person, p.Role, accountsOf(p), personState(p), secondFactor(p), orNever(p.LastLogin, now),
			orDash(p.LastAddress))
	}
	return g
}

func personFacts(p api.PersonInfo, now time.Time) grid {
	g := newGrid("person", p.Person)
	g.add("role", p.Role)
	g.add("accounts", accountsOf(p))
	g.add("state", personState(p))
	if p.Identity != nil {
		g.add("logs in at", p.Identity.Issuer)
		g.fact("name there", p.Alias)
		g.add("as", cmp.Or(p.Identity.Subject, "the first who logs in there with this name"))
	}
	g.add("second factor", secondFactor(p))
	g.add("created", moment(p.Created, now))
	g.add("last login", orNever(p.LastLogin, now)+" "+p.LastAddress)
	return g
}

func accountsOf(p api.PersonInfo) string {
	if len(p.Accounts) == 0 {
		return "all"
	}
	return strings.Join(p.Accounts, " ")
}

func personState(p api.PersonInfo) string {
	switch {
	case p.Refused != "":
		return "REFUSED: " + p.Refused
	case p.Disabled:
		return "disabled"
	case p.Invited:
		return "invited"
	}
	return "active"
}

func secondFactor(p api.PersonInfo) string {
	if p.TOTP {
		return "app"
	}
	return "-"
}

// personCreateCmd adds a person.
type personCreateCmd struct {
	Name    string   `arg:"" help:"Login name: letters, digits and . _ - + @, such as ann or ann@example.com."`
	Role    api.Role `enum:"viewer,operator,admin" default:"viewer" placeholder:"ROLE" help:"viewer (the default) reads, operator does all but people, tokens, settings and the audit log, admin does all."`
	Account []string `placeholder:"ID" help:"Bind the person to an account; several by commas. Default: all accounts."`
	Issuer  string   `placeholder:"URL" help:"The person logs in at this issuer (oidc.issuer), under this name, and has no password here."`
	Subject string   `placeholder:"SUB" help:"The claim sub of the person there. Default: that of the first login under the name."`
}

// Run adds a person and prints the link, alone on standard output.
func (c *personCreateCmd) Run(s *session) error {
	req := api.PersonRequest{Person: c.Name, Role: c.Role, Accounts: c.Account}
	if c.Subject != "" && c.Issuer == "" {
		return usage("--subject needs --issuer")
	}
	if c.Issuer == "" {
		answer, err := api.CreatePerson.Do(s, s.client, req)
		return s.link(answer, err)
	}
	req.Identity = &api.Identity{Issuer: c.Issuer, Subject: c.Subject}
	answer, err := api.CreatePerson.Do(s, s.client, req)
	return s.said(answer, err, "%s logs in at %s", clean(answer.Person), c.Issuer)
}

// link prints a one-time link. Without a service URL it leads to the address that this command uses.
func (s *session) link(l api.PersonLink, err error) error {
	if strings.HasPrefix(l.Link, "/") {
		l.Link = s.client.Base() + l.Link
	}
	return s.answer(l, err, func() {
		s.note("for %s, until %s; it works once, and is shown only this once:", clean(l.Person),
			l.Expires.Local().Format("2006-01-02 15:04"))
		s.say("%s", l.Link)
	})
}

// personLinkCmd makes a link for a person.
type personLinkCmd struct {
	Name string `arg:"" help:"Name of the person."`
}

// Run makes the link and prints it, alone on standard output.
func (c *personLinkCmd) Run(s *session) error {
	answer, err := api.LinkPerson.Do(s, s.client, c.Name)
	return s.link(answer, err)
}

// personChangeCmd changes a person.
type personChangeCmd struct {
	Name    string   `arg:"" help:"Name of the person."`
	Role    api.Role `enum:",viewer,operator,admin" default:"" placeholder:"ROLE" help:"New role: viewer, operator or admin."`
	Account []string `placeholder:"ID" help:"Bind the person to these accounts instead; several by commas."`
	All     bool     `help:"Bind the person to no account: all are seen."`
	Disable bool     `xor:"able" help:"The person may not log in any more."`
	Enable  bool     `xor:"able" help:"The person may log in again."`
}

// Run changes a person.
func (c *personChangeCmd) Run(s *session) error {
	var patch api.PersonPatch
	if c.Role != "" {
		patch.Role = &c.Role
	}
	switch {
	case c.All && len(c.Account) > 0:
		return usage("--all and --account exclude each other")
	case c.All:
		patch.Accounts = &[]string{}
	case len(c.Account) > 0:
		patch.Accounts = &c.Account
	}
	if c.Disable || c.Enable {
		patch.Disabled = &c.Disable
	}
	if patch == (api.PersonPatch{}) {
		return usage("nothing to change: give --role, --account, --all, --disable or --enable")
	}
	answer, err := api.UpdatePerson.Do(s, s.client, patch, c.Name)
	return s.answer(answer, err, func() { s.show(personFacts(answer, time.Now())) })
}

// personDoCmd does something about a person that needs no more than the name.
type personDoCmd struct {
	Name string `arg:"" help:"Name of the person."`

	route api.Fetch[api.PersonInfo]
	said  string
}

// Run does it.
func (c *personDoCmd) Run(s *session) error {
	answer, err := c.route.Do(s, s.client, c.Name)
	return s.said(answer, err, c.said, clean(answer.Person))
}

func sessionVerbs() []verb {
	return []verb{
		{name: "list", help: "List the sessions of the pages (the default).", run: &sessionListCmd{}},
		{name: "end", help: "End a session.", run: &deleteCmd[api.Deleted]{route: api.EndSession, what: "session",
			said: func(api.Deleted) string { return "the session has ended" }}},
	}
}

// sessionListCmd lists sessions.
type sessionListCmd struct {
	Person string `placeholder:"NAME" help:"Only those of this person."`
}

// Run lists sessions.
func (c *sessionListCmd) Run(s *session) error {
	answer, err := api.ListSessions.Do(s, s.client, api.SessionQuery{Person: c.Person})
	now := time.Now()
	g := newGrid("id", "who", "account", "from", "begun", "last used", "ends", "browser")
	for _, one := range answer.Sessions {
		who := one.Person
		if who == "" {
			who = "token " + clip(one.TokenID, 12)
		}
		g.add(one.ID, who, orDash(one.Account), orDash(one.Address), moment(one.Created, now),
			moment(one.LastUsed, now), moment(one.Expires, now), clip(one.Agent, 40))
	}
	return s.table(answer.Sessions, err, "nobody is logged in at the pages", g, "")
}
