package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/postroom/postroom/api"
)

func listVerbs() []verb {
	return []verb{
		{name: "list", help: "List the mailing lists (the default).", run: list(api.ListLists,
			"no lists; to add one: postroom list add --help", listsGrid)},
		{name: "show", help: "Show one list.", run: show(api.GetList, listFacts)},
		{name: "add", help: "Add a list.", run: &listAddCmd{}},
		{name: "update", help: "Change a list.", run: &listUpdateCmd{}},
		{name: "form", help: "Show the URL of a list's public form, and HTML to embed.",
			run: asks(listForm)},
		{name: "delete", help: "Delete a list and its subscriptions. Keeps the subscribers.",
			run: &deleteCmd[api.Deleted]{route: api.DeleteList, what: "list",
				consequence: " with all its subscriptions and their proofs"}},
	}
}

func listsGrid(list []api.ListInfo, now time.Time) grid {
	g := newGrid("list", "name", "account", "opt-in", "subscribed", "pending", "left", "changed")
	for _, l := range list {
		g.add(l.ListID, clip(l.Name, 60), l.Account, l.OptIn, l.Counts.Subscribed, l.Counts.Pending,
			l.Counts.Left, moment(l.Updated, now))
	}
	return g
}

func listFacts(l api.ListInfo, now time.Time) grid {
	g := newGrid("list", l.ListID)
	g.add("name", l.Name)
	g.fact("description", l.Description)
	g.add("account", l.Account)
	g.add("opt-in", l.OptIn)
	g.fact("public", noteIf(l.Public, "yes"))
	g.fact("search engines", noteIf(l.NoIndex, "hidden"))
	g.fact("waits for confirmations", l.PendingRetention)
	g.fact("confirmation", listMailWords(l.Confirmation))
	g.fact("welcome", listMailWords(l.Welcome))
	g.add("subscribed", l.Counts.Subscribed)
	g.add("pending", l.Counts.Pending)
	g.add("left", l.Counts.Left)
	g.add("version", l.Version)
	g.add("created", moment(l.Created, now))
	g.add("changed", moment(l.Updated, now))
	return g
}

// listForm prints the address of the form, and the html below it.
func listForm(s *session, l byID) error {
	form, err := api.GetListForm.Do(s, s.client, l.ID)
	return s.answer(form, err, func() { s.say("%s\n\n%s", form.URL, form.HTML) })
}

// listMailWords returns what a mail of a list is made of; empty: there is none.
func listMailWords(m *api.ListMail) string {
	switch {
	case m == nil:
		return ""
	case m.Template != "":
		return "template " + m.Template
	}
	return m.Subject
}

// listFields are the flags of lists that can change.
type listFields struct {
	Description  *string `placeholder:"TEXT" help:"Description."`
	OptIn        *string `enum:"double,single" placeholder:"KIND" help:"double (the default; subscribers confirm by a link in an email) or single."`
	Public       *bool   `negatable:"" help:"Publish its form and its archive."`
	NoIndex      *bool   `name:"noindex" negatable:"" help:"Hide its pages from search engines."`
	Pending      *string `placeholder:"TIME" help:"Time to confirm a subscription, for example 30d. Empty for the default."`
	Confirmation *string `placeholder:"ID" help:"Template of the confirmation email. Empty for the built-in template."`
	Welcome      *string `placeholder:"ID" help:"Template of the welcome email. Empty for none."`

	ConfirmationWords listMailFlags `embed:"" prefix:"confirmation-"`
	WelcomeWords      listMailFlags `embed:"" prefix:"welcome-"`
}

// listMailFlags are the words of a mail of a list, in place of a template.
type listMailFlags struct {
	Subject string `placeholder:"TEXT" help:"Subject of this email, instead of a template."`
	HTML    string `name:"html" placeholder:"FILE" help:"File with its HTML, or - for standard input."`
	Text    string `placeholder:"FILE" help:"File with its text."`
}

// patch returns the change that the flags name. was is the list so far: words that the flags do not name
// stay.
func (f listFields) patch(con *console, was api.List) (api.ListPatch, error) {
	p := api.ListPatch{Description: f.Description, OptIn: f.OptIn, Public: f.Public, NoIndex: f.NoIndex,
		PendingRetention: f.Pending}
	var err error
	p.Confirmation, err = f.ConfirmationWords.mail(con, "--confirmation", f.Confirmation, was.Confirmation)
	if err != nil {
		return p, err
	}
	p.Welcome, err = f.WelcomeWords.mail(con, "--welcome", f.Welcome, was.Welcome)
	return p, err
}

func (f listFields) words() bool {
	return f.ConfirmationWords != listMailFlags{} || f.WelcomeWords != listMailFlags{}
}

// mail returns what the flags make of a mail; nil: it stays.
func (f listMailFlags) mail(con *console, flag string, template *string, was *api.ListMail) (*api.ListMail,
	error) {
	switch {
	case f == listMailFlags{} && template == nil:
		return nil, nil
	case f == listMailFlags{}:
		return &api.ListMail{Template: *template}, nil
	case template != nil:
		return nil, usage("give %s or %s-subject, -html and -text, not both", flag, flag)
	}
	mail := *cmp.Or(was, &api.ListMail{})
	mail.Template, mail.Subject = "", cmp.Or(f.Subject, mail.Subject)
	html, err := con.readPart(flag+"-html", f.HTML)
	if err != nil {
		return nil, err
	}
	text, err := con.readPart(flag+"-text", f.Text)
	api.Set(&mail.HTML, html)
	api.Set(&mail.Text, text)
	return &mail, err
}

type listAddCmd struct {
	Name    string `arg:"" help:"Name, for example 'Weekly news'."`
	ID      string `placeholder:"ID" help:"ID: letters a-z, digits and hyphens. Derived from the name by default."`
	Account string `placeholder:"ID" help:"Account that sends its email. Defaults to the token's account, else default."`
	listFields
}

func (l *listAddCmd) Run(s *session) error {
	req := api.List{ListID: l.ID, Account: l.Account, Name: l.Name}
	p, err := l.patch(s.console, req)
	if err != nil {
		return err
	}
	api.Patch(&req, p)
	made, err := api.CreateList.Do(s, s.client, req)
	return s.said(made, err, "list %s of account %s: added, with %s opt-in", made.ListID, clean(made.Account),
		made.OptIn)
}

type listUpdateCmd struct {
	ID   string  `arg:"" help:"ID of the list."`
	Name *string `placeholder:"TEXT" help:"Name."`
	listFields
}

func (l *listUpdateCmd) Run(s *session) error {
	var was api.ListInfo
	var err error
	if l.words() {
		if was, err = api.GetList.Do(s, s.client, l.ID); err != nil {
			return err
		}
	}
	p, err := l.patch(s.console, was.List)
	if err != nil {
		return err
	}
	if p.Name = l.Name; l.words() {
		p.Version = &was.Version // words that stay are those of this version
	}
	if p == (api.ListPatch{}) {
		return errNothing
	}
	changed, err := api.UpdateList.Do(s, s.client, p, l.ID)
	return s.said(changed, err, "list %s: changed", changed.ListID)
}

// ofAccount names the account of a subscriber.
type ofAccount struct {
	Account string `placeholder:"ID" help:"Account of the subscriber. Defaults to the token's account, else default."`
}

func (f ofAccount) query() api.SubscriberAccount { return api.SubscriberAccount{Account: f.Account} }

// skippedNote returns which lists a subscriber was not put on, and why; empty: none.
func skippedNote(list []api.SkippedList) string {
	text := ""
	for _, skipped := range list {
		text += cmp.Or(noteIf(text != "", ", "), "not put on: ") + fmt.Sprintf("%s (%s)", skipped.ListID,
			skipped.Reason)
	}
	return text
}
