package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func digestRecipientVerbs() []verb {
	return []verb{
		{name: "list", help: "List the readers of an account (the default).", run: &digestRecipientsCmd{},
			more: "Example:\n  postroom digest recipients list --search @example.net --limit 0"},
		{name: "show", help: "Show a reader: preferences, the next mails, what waits.",
			run:  asks(digestRecipientShow),
			more: "Example:\n  postroom digest recipients show user-17"},
		{name: "set", help: "Store a reader, or change what the flags name.", run: &digestRecipientSetCmd{},
			more: whenHelp + `

Examples:
  postroom digest recipients set user-17 --email ann@example.net --tz Europe/Zurich --prefer '*=daily 18:00'
  postroom digest recipients set user-17 --prefer 'comment=immediate 10m' --prefer like=off
  postroom digest recipients set user-17 --quiet 22:00-07:00 --pause-until 'in 48h'`},
		{name: "delete", help: "Delete a reader with everything that waits.", run: &digestRecipientDeleteCmd{},
			more: "Example:\n  postroom digest recipients delete user-17 --yes"},
	}
}

// digestRecipientsCmd lists readers.
type digestRecipientsCmd struct {
	ofDigests
	Search string `placeholder:"TEXT" help:"Only those with this in their id or address."`
	limitFlag
}

// Run lists readers.
func (c *digestRecipientsCmd) Run(s *session) error {
	found, more, _, err := fetch(s, api.ListDigestRecipients, api.DigestRecipientQuery{Account: c.Account,
		Search: c.Search, PageSize: c.pageSize(maxPage)}, c.limitFlag, nil)
	return s.some("recipients", found, more, err, "no readers", digestRecipientsGrid(found, time.Now()))
}

func digestRecipientsGrid(list []api.DigestRecipient, now time.Time) grid {
	g := newGrid("recipient", "address", "zone", "waiting", "next mail")
	for _, r := range list {
		waiting, next := 0, "-"
		for _, n := range r.Waiting {
			waiting += n
		}
		if waiting > 0 && len(r.Next) > 0 {
			next = moment(r.Next[0].At, now)
		}
		if r.PausedUntil != nil {
			next = "paused"
		}
		g.add(r.Recipient, orDash(clip(r.Email, 24)), orDash(clip(r.TZ, 16)), waiting, next)
	}
	return g
}

// ofReader names a reader.
type ofReader struct {
	Recipient string `arg:"" help:"Your id of the reader."`
	ofDigests
}

// digestRecipientShow shows a reader.
func digestRecipientShow(s *session, c ofReader) error {
	r, err := api.GetDigestRecipient.Do(s, s.client, c.query(), c.Recipient)
	return s.answer(r, err, func() { s.show(digestRecipientFacts(r, time.Now())) })
}

func digestRecipientFacts(r api.DigestRecipient, now time.Time) grid {
	var g grid
	g.add("recipient", r.Recipient)
	g.add("account", r.Account)
	g.fact("address", r.Email)
	g.fact("name", r.Name)
	g.fact("locale", r.Locale)
	g.fact("time zone", r.TZ)
	for _, category := range slices.Sorted(maps.Keys(r.Preferences)) {
		g.add("wants "+category, preferenceText(r.Preferences[category]))
	}
	for _, q := range r.Quiet {
		g.add("quiet", quietText(q))
	}
	if r.PausedUntil != nil {
		g.add("paused until", stamp(*r.PausedUntil, now))
	}
	for _, category := range slices.Sorted(maps.Keys(r.Waiting)) {
		g.add("waiting "+category, r.Waiting[category])
	}
	for _, next := range r.Next {
		g.add("next mail", fmt.Sprintf("%s: %s, %s", strings.Join(next.Categories, ", "), moment(next.At, now),
			next.Words))
	}
	for _, warning := range r.Warnings {
		g.add("warning", warning)
	}
	g.add("version", r.Version)
	g.add("created", moment(r.Created, now))
	g.add("changed", moment(r.Updated, now))
	return g
}

// digestRecipientSetCmd stores or changes a reader.
type digestRecipientSetCmd struct {
	ofReader
	Email      *string  `placeholder:"ADDRESS" help:"Address that is mailed."`
	Name       *string  `placeholder:"TEXT" help:"Name of the reader."`
	Locale     *string  `placeholder:"TAG" help:"Language of the mail, such as de-AT; empty: the account's."`
	TZ         *string  `name:"tz" placeholder:"ZONE" help:"Time zone, such as Europe/Zurich; empty: UTC."`
	Prefer     []string `sep:"none" placeholder:"CATEGORY=WHEN" help:"When a category is mailed, such as 'comment=daily 08:00'; * is all others, and nothing behind = removes the preference. May be repeated."`
	Replace    bool     `help:"The preferences of --prefer are all there are: remove others."`
	Quiet      []string `sep:"none" placeholder:"HOURS" help:"Hours without mail that is not urgent, such as 22:00-07:00 or 'fri,sat 22:00-09:00'; may be repeated. They replace those that are set."`
	NoQuiet    bool     `help:"Remove all quiet hours."`
	PauseUntil string   `placeholder:"WHEN" help:"Mail nothing before, and everything in one mail then: in 48h, or 2030-12-24T08:00:00Z."`
	NoPause    bool     `help:"End the pause."`
}

// Run stores the reader, or changes what the flags name.
func (c *digestRecipientSetCmd) Run(s *session) error {
	req, err := c.request()
	if err != nil {
		return err
	}
	var r api.DigestRecipient
	if c.Replace {
		r, err = api.PutDigestRecipient.Do(s, s.client, req, c.Recipient)
	} else {
		r, err = c.patch(s, req)
	}
	return s.answer(r, err, func() {
		s.say("%s (%s), version %d", clean(r.Recipient), clean(cmp.Or(r.Email, "no address")), r.Version)
		for _, next := range r.Next[:min(1, len(r.Next))] {
			s.note("next mail: %s, %s", moment(next.At, time.Now()), clean(next.Words))
		}
		for _, warning := range r.Warnings {
			s.note("warning: %s", clean(warning))
		}
	})
}

// patch changes the reader, or stores one that is not known.
func (c *digestRecipientSetCmd) patch(s *session, req api.DigestRecipientRequest) (api.DigestRecipient,
	error) {
	r, err := api.PatchDigestRecipient.Do(s, s.client, req, c.Recipient)
	if f, ok := errors.AsType[*api.Failure](err); !ok || f.Problem.Code != "DigestRecipientNotFound" {
		return r, err
	}
	return api.PutDigestRecipient.Do(s, s.client, req, c.Recipient)
}

// request returns what the flags name.
func (c *digestRecipientSetCmd) request() (api.DigestRecipientRequest, error) {
	req := api.DigestRecipientRequest{Account: c.Account, Email: c.Email, Name: c.Name, Locale: c.Locale,
		TZ: c.TZ}
	if c.NoQuiet && c.Quiet != nil {
		return req, usage("--no-quiet and --quiet exclude each other")
	}
	if c.NoPause && c.PauseUntil != "" {
		return req, usage("--no-pause and --pause-until exclude each other")
	}
	if c.Replace {
		req.Preferences = map[string]*api.DigestPreference{}
	}
	if err := c.prefer(&req); err != nil {
		return req, err
	}
	quiet, err := parseQuiets(c.Quiet)
	if err != nil {
		return req, err
	}
	if c.NoQuiet || quiet != nil {
		req.Quiet = new(append([]api.DigestQuiet{}, quiet...))
	}
	if req.PausedUntil, err = optionalTime("--pause-until", c.PauseUntil, parseWhen); c.NoPause {
		req.PausedUntil = new(time.Now().Add(-time.Minute)) // a time in the past ends it
	}
	return req, err
}

// prefer reads the preferences.
func (c *digestRecipientSetCmd) prefer(req *api.DigestRecipientRequest) error {
	for _, text := range c.Prefer {
		category, when, ok := strings.Cut(text, "=")
		if !ok || category == "" {
			return usage("--prefer: %q is not CATEGORY=WHEN, such as 'comment=daily 08:00'", text)
		}
		if req.Preferences == nil {
			req.Preferences = map[string]*api.DigestPreference{}
		}
		if when == "" {
			req.Preferences[category] = nil
			continue
		}
		preference, err := parsePreference(when)
		if err != nil {
			return usage("--prefer: %v", err)
		}
		req.Preferences[category] = &preference
	}
	return nil
}

// digestRecipientDeleteCmd deletes a reader.
type digestRecipientDeleteCmd struct {
	ofReader
	Yes bool `short:"y" help:"Do not ask."`
}

// Run deletes a reader. It fails if there is none.
func (c *digestRecipientDeleteCmd) Run(s *session) error {
	do := func() (api.Deleted, error) {
		return api.DeleteDigestRecipient.Do(s, s.client, c.query(), c.Recipient)
	}
	return deleting(s, c.Yes, "reader", c.Recipient, " with everything that waits", do, nil)
}

// digestWaiting lists what waits, oldest first.
func digestWaiting(s *session, c ofReader) error {
	waits, err := api.ListWaitingDigestEvents.Do(s, s.client, c.query(), c.Recipient)
	total := 0
	for _, n := range waits.Counts {
		total += n
	}
	return s.table(waits, err, "nothing waits", digestWaitingGrid(waits.Events, time.Now()),
		noteIf(total > len(waits.Events), "%d events wait in all; the older ones are only counted", total))
}

func digestWaitingGrid(list []api.DigestWaitingEvent, now time.Time) grid {
	g := newGrid("category", "about", "title", "by", "priority", "when")
	for _, e := range list {
		actor := ""
		if e.Actor != nil {
			actor = cmp.Or(e.Actor.Name, e.Actor.ID)
		}
		g.add(clip(e.Category, 12), clip(e.EntityType+" "+e.EntityID, 14), orDash(clip(e.Title, 12)),
			orDash(clip(actor, 8)), cmp.Or(e.Priority, "normal"), momentOrDash(e.OccurredAt, now))
	}
	return g
}

// digestPreviewCmd shows the mail of a reader.
type digestPreviewCmd struct {
	ofReader
	As string `enum:"text,html,subject" default:"text" help:"What to print: text (the subject, and the text of the mail), html or subject."`
}

// Run prints the mail, and notes when it is due.
func (c *digestPreviewCmd) Run(s *session) error {
	mail, err := api.PreviewDigest.Do(s, s.client, c.query(), c.Recipient)
	return s.answer(mail, err, func() {
		switch {
		case mail.Subject == "":
			s.note("nothing waits")
			return
		case mail.Due != nil:
			s.note("due %s", moment(*mail.Due, time.Now()))
		}
		switch c.As {
		case "html":
			fmt.Fprintln(s.out, s.lines(mail.HTML))
		case "subject":
			s.say("%s", clean(mail.Subject))
		default:
			s.say("%s\n", clean(mail.Subject))
			fmt.Fprintln(s.out, s.lines(mail.Text))
		}
	})
}

// digestSend begins the mail. That nothing waits is no error.
func digestSend(s *session, c ofReader) error {
	answer, err := api.SendDigest.Do(s, s.client, c.query(), c.Recipient)
	return s.said(answer, err, "run %s is %s%s", answer.Run, answer.State, colon(answer.Reason))
}
