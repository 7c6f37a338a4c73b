package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/postroom/postroom/api"
)

// aPerson names a person by their address.
type aPerson struct {
	Email   string `arg:"" name:"address" help:"Address of the person."`
	Account string `placeholder:"ID" help:"Only what this account has. Default: all accounts, or that of the token."`
}

func (p aPerson) request() api.ErasureRequest {
	return api.ErasureRequest{Email: p.Email, Account: p.Account}
}

// personEraseCmd erases a person everywhere.
type personEraseCmd struct {
	aPerson
	Yes bool `short:"y" help:"Do not ask."`
}

// Run begins to erase a person. It does not wait for the end.
func (c *personEraseCmd) Run(s *session) error {
	if !c.Yes && !s.confirm("Erase all that there is of %s? It can't be undone.", clean(c.Email)) {
		return errors.New("nothing was erased: say --yes to erase the person everywhere")
	}
	made, err := api.ErasePerson.Do(s, s.client, c.request())
	return s.said(made, err, "erasure %s: %s; the receipt: postroom subscribers erasure %s", made.ID, made.State,
		made.ID)
}

// personExport prints JSON, for there is more than a table could show.
func personExport(s *session, c aPerson) error {
	data, err := api.ExportPerson.Do(s, s.client, c.request())
	if err != nil {
		return err
	}
	return s.printJSON(data)
}

func erasureFacts(e api.Erasure, now time.Time) grid {
	g := newGrid("erasure", e.ID)
	g.add("state", e.State)
	g.add("account", orDash(e.Account))
	g.add("person", e.Person)
	if e.Place != "" {
		g.add("searching", e.Place)
	}
	if e.Trouble != "" {
		g.add("trouble", clean(e.Trouble))
	}
	g.add("created", moment(e.Created, now))
	g.add("ended", momentOrDash(e.Ended, now))
	p := e.Places
	for _, place := range []struct {
		name string
		n    int
	}{
		{"subscribers", p.Subscribers}, {"lists", p.Lists}, {"campaigns", p.Campaigns}, {"outbox", p.Outbox},
		{"dead letters", p.DeadLetters}, {"messages", p.Messages}, {"events", p.Events},
		{"documents", p.Documents}, {"digests", p.Digests}, {"deliveries", p.Deliveries}, {"suppressions",
			p.Suppressions},
	} {
		g.add(place.name, strconv.Itoa(place.n))
	}
	for i, text := range e.Remaining {
		g.add(noteIf(i == 0, "not erased"), clean(text))
	}
	return g
}
