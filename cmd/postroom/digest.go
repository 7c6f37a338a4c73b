package main

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/postroom/postroom/api"
)

func digestVerbs() []verb {
	return []verb{
		{name: "event", help: "Hand in notifications of readers: one, or a file of them.", run: &digestEventCmd{},
			more: `Examples:
  postroom digest event user-17 --category comment --entity-type post --entity-id 5 --title Spring --actor Bo
  postroom digest event user-17 --email ann@example.net --category like --entity-type post --entity-id 5
  postroom digest event --file events.ndjson
A line of a file:
  {"recipient":"user-17","category":"comment","entityType":"post","entityId":"5","idempotencyKey":"c-99"}`},
		{name: "events", help: "List what waits for a reader.", run: asks(digestWaiting),
			more: "Example:\n  postroom digest events user-17"},
		{name: "remove", help: "Take back events that are not mailed yet.", run: &digestRemoveCmd{},
			more: `Examples:
  postroom digest remove user-17 --key c-99
  postroom digest remove user-17 user-18 --category comment --entity-type post --entity-id 5`},
		{name: "recipients", help: "Readers, and when they want their mail.", below: digestRecipientVerbs()},
		{name: "kinds", help: "What is known of categories.", below: digestKindVerbs()},
		{name: "times", help: "Say when a preference comes.", run: &digestTimesCmd{},
			more: whenHelp + `

Examples:
  postroom digest times 'daily 08:00' --tz Europe/Zurich
  postroom digest times 'cron 0 9 * * 1-5' --quiet 22:00-07:00 --count 20`},
		{name: "preview", help: "Show what would be mailed to a reader now.", run: &digestPreviewCmd{},
			more: "Example:\n  postroom digest preview user-17 --as html > mail.html"},
		{name: "send", help: "Mail what waits for a reader now.", run: asks(digestSend),
			more: "Example:\n  postroom digest send user-17"},
		{name: "runs", help: "List the mails of readers, newest first.", run: &digestRunsCmd{},
			more: `Examples:
  postroom digest runs --state failed --since 24h
  postroom digest runs --recipient user-17`},
		{name: "run", help: "Show one run, with what it mailed.", run: asks(digestRun),
			more: "Example:\n  postroom digest run RUN --json"},
		{name: "retry", help: "Let a failed run be tried again.", run: asks(digestRetry),
			more: "Example:\n  postroom digest retry RUN"},
	}
}

// ofDigests names the account that mails readers.
type ofDigests struct {
	Account string `placeholder:"ID" help:"Account that mails the reader. Default: that of the token, else default."`
}

func (f ofDigests) query() api.DigestAccount { return api.DigestAccount{Account: f.Account} }

func digestKindVerbs() []verb {
	return []verb{
		{name: "list", help: "List the kinds (the default).", run: &digestKindsCmd{},
			more: "Example:\n  postroom digest kinds list --account shop"},
		{name: "show", help: "Show one kind.", run: asks(digestKindShow),
			more: "Example:\n  postroom digest kinds show comment"},
		{name: "add", help: "Say what a category is called, and when it is mailed.", run: &digestKindAddCmd{},
			more: `Examples:
  postroom digest kinds add comment --title en=Comments --title de=Kommentare --preference 'daily 08:00'
  postroom digest kinds add security --required --preference immediate --lane transactional`},
		{name: "update", help: "Change what the flags name of a kind.", run: &digestKindUpdateCmd{},
			more: "Example:\n  postroom digest kinds update comment --preference 'weekly mon 08:00'"},
		{name: "delete", help: "Delete a kind; the events of the category stay.", run: &digestKindDeleteCmd{},
			more: "Example:\n  postroom digest kinds delete comment --yes"},
	}
}

// digestKindsCmd lists kinds.
type digestKindsCmd struct {
	Account string `placeholder:"ID" help:"Only those of this account."`
}

// Run lists kinds.
func (c *digestKindsCmd) Run(s *session) error {
	kinds, err := all(s, api.ListDigestKinds, api.DigestKindQuery{Account: c.Account,
		PageQuery: api.PageQuery{PageSize: maxPage}})
	return s.table(kinds, err, "no kinds; to add one: postroom digest kinds add --help",
		digestKindsGrid(kinds), "")
}

func digestKindsGrid(list []api.DigestKindInfo) grid {
	g := newGrid("category", "account", "title", "mailed", "template", "required")
	for _, k := range list {
		g.add(k.Category, clip(k.Account, 10), orDash(clip(titleOf(k.Title), 16)), clip(kindMailed(k), 18),
			orDash(clip(k.Template, 10)), orDash(noteIf(k.Required, "yes")))
	}
	return g
}

// titleOf returns one of the titles of a kind: the English one, else the first.
func titleOf(titles map[string]string) string {
	for _, tag := range slices.Sorted(maps.Keys(titles)) {
		return cmp.Or(titles["en"], titles[tag])
	}
	return ""
}

func kindMailed(k api.DigestKindInfo) string {
	if k.Preference == nil {
		return "default"
	}
	return preferenceText(*k.Preference)
}

func digestKindFacts(k api.DigestKindInfo, now time.Time) grid {
	var g grid // without headings, which are capitals: ids are not
	g.add("kind", k.Category)
	g.add("account", k.Account)
	for _, tag := range slices.Sorted(maps.Keys(k.Title)) {
		g.add("title "+tag, k.Title[tag])
	}
	g.add("mailed", kindMailed(k))
	g.fact("required", noteIf(k.Required, "readers can't turn it off"))
	g.fact("template", k.Template)
	g.fact("lane", string(k.Lane))
	g.add("version", k.Version)
	g.add("created", moment(k.Created, now))
	g.add("changed", moment(k.Updated, now))
	return g
}

// ofKind names a kind.
type ofKind struct {
	Category string `arg:"" help:"Category, such as comment."`
	Account  string `placeholder:"ID" help:"Whose kind. Default: that of the token, else default."`
}

// digestKindShow shows a kind.
func digestKindShow(s *session, c ofKind) error {
	k, err := api.GetDigestKind.Do(s, s.client, api.DigestAccount{Account: c.Account}, c.Category)
	return s.answer(k, err, func() { s.show(digestKindFacts(k, time.Now())) })
}

// digestKindFields are the flags of kinds that can change.
type digestKindFields struct {
	Title      map[string]string `mapsep:"none" placeholder:"LANGUAGE=TEXT" help:"What readers call it, such as en=Comments; may be repeated."`
	Preference string            `placeholder:"WHEN" help:"When readers without a preference of their own get it, such as 'daily 08:00', or default; see postroom digest times --help."`
	Required   *bool             `negatable:"" help:"Readers can't turn it off."`
	Template   *string           `placeholder:"ID" help:"Stored template of mail of this category alone; empty: none."`
	Lane       *string           `enum:"transactional,bulk" placeholder:"LANE" help:"Lane of mail of this category alone: transactional or bulk."`
}

// patch returns the change that the flags name.
func (f digestKindFields) patch() (api.DigestKindPatch, error) {
	p := api.DigestKindPatch{Title: f.Title, Required: f.Required, Template: f.Template}
	if f.Lane != nil {
		p.Lane = new(api.Lane(*f.Lane))
	}
	switch f.Preference {
	case "":
	case "default":
		p.Preference = new(*api.DigestPreference)
	default:
		preference, err := parsePreference(f.Preference)
		if err != nil {
			return p, usage("--preference: %v", err)
		}
		p.Preference = new(&preference)
	}
	return p, nil
}

// digestKindAddCmd adds a kind.
type digestKindAddCmd struct {
	ofKind
	digestKindFields
}

// Run adds a kind.
func (c *digestKindAddCmd) Run(s *session) error {
	p, err := c.patch()
	if err != nil {
		return err
	}
	kind := api.DigestKind{Category: c.Category, Account: c.Account}
	api.Patch(&kind, p)
	k, err := api.CreateDigestKind.Do(s, s.client, kind)
	return s.said(k, err, "kind %s of account %s: mailed %s", clean(k.Category), clean(k.Account),
		clean(kindMailed(k)))
}

// digestKindUpdateCmd changes a kind.
type digestKindUpdateCmd struct {
	ofKind
	digestKindFields
}

// Run changes what the flags name.
func (c *digestKindUpdateCmd) Run(s *session) error {
	p, err := c.patch()
	if err != nil {
		return err
	}
	if p.Title == nil && p.Preference == nil && p.Required == nil && p.Template == nil && p.Lane == nil {
		return errNothing
	}
	p.Account = c.Account
	k, err := api.UpdateDigestKind.Do(s, s.client, p, c.Category)
	return s.said(k, err, "kind %s: mailed %s", clean(k.Category), clean(kindMailed(k)))
}

// digestKindDeleteCmd deletes a kind.
type digestKindDeleteCmd struct {
	ofKind
	Yes bool `short:"y" help:"Do not ask."`
}

// Run deletes a kind. It fails if there is none.
func (c *digestKindDeleteCmd) Run(s *session) error {
	do := func() (api.Deleted, error) {
		return api.DeleteDigestKind.Do(s, s.client, api.DigestAccount{Account: c.Account}, c.Category)
	}
	return deleting(s, c.Yes, "kind", c.Category, "; its events are mailed as the settings say", do, nil)
}
