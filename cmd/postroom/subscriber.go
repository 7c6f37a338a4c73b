package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

func subscriberVerbs() []verb {
	return []verb{
		{name: "list", help: "List the subscribers of an account (the default).",
			run: first(api.ListSubscribers, "subscribers", subscribersGrid)},
		{name: "show", help: "Show one subscriber.", run: asks(subscriberShow)},
		{name: "add", help: "Add a subscriber, also to lists.", run: &subscriberAddCmd{}},
		{name: "update", help: "Change a subscriber.", run: &subscriberUpdateCmd{}},
		{name: "delete", help: "Delete a subscriber and all subscriptions. Keeps suppressions.",
			run: &subscriberDeleteCmd{}},
		{name: "subscribe", help: "Subscribe a subscriber to lists.", run: &subscriberSubscribeCmd{}},
		{name: "leave", help: "Unsubscribe a subscriber from a list.", run: &subscriberLeaveCmd{}},
		{name: "import", help: "Import a file of any size.", run: &subscribersImportCmd{}},
		{name: "export", help: "Export subscribers to a file that you can import again.",
			run: &subscribersExportCmd{filter: filterOf[api.SubscriberQuery]()}},
	}
}

func subscribersGrid(list []api.Subscriber, now time.Time) grid {
	g := newGrid("id", "address", "name", "lists", "tags", "since")
	for _, sub := range list {
		g.add(sub.ID, sub.Email, orDash(clip(sub.Name, 40)), orDash(clip(listsOf(sub), 60)),
			orDash(clip(strings.Join(sub.Tags, " "), 40)), moment(sub.Created, now))
	}
	return g
}

// listsOf returns the lists of a subscriber, with the state where it is another than subscribed.
func listsOf(sub api.Subscriber) string {
	var all []string
	for _, l := range sub.Lists {
		if l.State == "subscribed" {
			all = append(all, l.ListID)
		} else {
			all = append(all, l.ListID+" ("+l.State+")")
		}
	}
	return strings.Join(all, ", ")
}

// who names a subscriber.
type who struct {
	Who string `arg:"" help:"Address or ID of the subscriber."`
	ofAccount
}

func subscriberShow(s *session, c who) error {
	sub, err := api.GetSubscriber.Do(s, s.client, c.query(), c.Who)
	return s.answer(sub, err, func() { s.show(subscriberFacts(sub, time.Now())) })
}

func subscriberFacts(sub api.Subscriber, now time.Time) grid {
	g := newGrid("subscriber", sub.ID)
	g.add("account", sub.Account)
	g.add("address", sub.Email)
	g.fact("name", sub.Name)
	g.fact("locale", sub.Locale)
	g.fact("time zone", sub.TZ)
	g.fact("tags", strings.Join(sub.Tags, ", "))
	for _, name := range slices.Sorted(maps.Keys(sub.Attributes)) {
		text, _ := json.Marshal(sub.Attributes[name]) // was read from JSON
		g.add("attribute "+name, string(text))
	}
	for _, l := range sub.Lists {
		g.add("list "+l.ListID, fmt.Sprintf("%s, %s, by %s", l.State, moment(l.Since, now), l.Source))
	}
	g.add("version", sub.Version)
	g.add("created", moment(sub.Created, now))
	g.add("changed", moment(sub.Updated, now))
	return g
}

// subscriberFields are the flags of subscribers that can change.
type subscriberFields struct {
	Name      *string  `placeholder:"TEXT" help:"Name."`
	Locale    *string  `placeholder:"TAG" help:"Language, for example de-AT."`
	TZ        *string  `name:"tz" placeholder:"ZONE" help:"Time zone, for example Europe/Vienna."`
	Tag       []string `placeholder:"TAG" help:"Tags, separated by commas."`
	Attribute []string `sep:"none" placeholder:"NAME=VALUE" help:"Attribute. Repeat the flag for several. Numbers, true, false, null (removes it) and JSON lists keep their type; quote a value to make it text."`
}

func (f subscriberFields) attributes() (map[string]any, error) {
	var all map[string]any
	for _, text := range f.Attribute {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usage("--attribute: %q is not NAME=VALUE", text)
		}
		if all == nil {
			all = map[string]any{}
		}
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			v = value
		}
		all[name] = v
	}
	return all, nil
}

// consentFlags are the proof that somebody agreed.
type consentFlags struct {
	Source      string `placeholder:"TEXT" help:"Source of the consent, for example checkout."`
	Words       string `placeholder:"TEXT" help:"Consent text. Needs --source."`
	Agreed      string `placeholder:"WHEN" help:"Time of the consent, or its age (2h). Defaults to now. Needs --source."`
	IP          string `name:"ip" placeholder:"ADDRESS" help:"IP address of the consent. Postroom stores only its network part. Needs --source."`
	Resubscribe bool   `help:"Resubscribe someone who unsubscribed. Needs --source. Not possible after a bounce or a complaint."`
}

func (f consentFlags) consent() (*api.Consent, error) {
	if f.Source == "" {
		if f.Words+f.Agreed+f.IP != "" {
			return nil, usage("--words, --agreed and --ip need --source")
		}
		return nil, nil
	}
	at, err := optionalTime("--agreed", f.Agreed, parseSince)
	return &api.Consent{Source: f.Source, Text: f.Words, Time: at, IP: f.IP}, err
}

// subscriptions returns what is asked for of lists, each as ID or ID=STATE.
func subscriptions(lists []string) []api.SubscriptionRequest {
	var all []api.SubscriptionRequest
	for _, text := range lists {
		id, state, _ := strings.Cut(text, "=")
		all = append(all, api.SubscriptionRequest{ListID: id, State: state})
	}
	return all
}

type subscriberAddCmd struct {
	Email string `arg:"" help:"Address."`
	ofAccount
	subscriberFields
	List   []string `placeholder:"ID[=STATE]" help:"Lists, separated by commas. STATE is subscribed (needs --source if the list has double opt-in) or pending."`
	Upsert bool     `help:"Update the subscriber if the address exists."`
	consentFlags
}

func (c *subscriberAddCmd) Run(s *session) error {
	attributes, err := c.attributes()
	if err != nil {
		return err
	}
	consent, err := c.consent()
	if err != nil {
		return err
	}
	req := api.SubscriberRequest{Account: c.Account, Email: c.Email, Tags: c.Tag, Attributes: attributes,
		Lists: subscriptions(c.List), Consent: consent, Upsert: c.Upsert, Resubscribe: c.Resubscribe}
	api.Patch(&req, c.subscriberFields)
	sub, err := api.CreateSubscriber.Do(s, s.client, req)
	return s.subscribed(sub, err)
}

// subscribed prints a subscriber whose lists may have changed.
func (s *session) subscribed(sub api.Subscriber, err error) error {
	return s.answer(sub, err, func() {
		s.say("%s %s: %s", sub.ID, clean(sub.Email), clean(cmp.Or(listsOf(sub), "on no list")))
		if note := skippedNote(sub.Skipped); note != "" {
			s.note("%s", clean(note))
		}
	})
}

type subscriberUpdateCmd struct {
	who
	Email *string `placeholder:"ADDRESS" help:"New address."`
	subscriberFields
	NoTags bool `help:"Remove all tags."`
}

func (c *subscriberUpdateCmd) Run(s *session) error {
	attributes, err := c.attributes()
	if err != nil {
		return err
	}
	p := api.SubscriberPatch{Account: c.Account, Email: c.Email, Name: c.Name, Locale: c.Locale, TZ: c.TZ,
		Attributes: attributes}
	switch {
	case c.NoTags && len(c.Tag) > 0:
		return usage("--no-tags and --tag exclude each other")
	case c.NoTags || len(c.Tag) > 0:
		p.Tags = new(append([]string{}, c.Tag...))
	case c.Email == nil && c.Name == nil && c.Locale == nil && c.TZ == nil && len(attributes) == 0:
		return errNothing
	}
	sub, err := api.UpdateSubscriber.Do(s, s.client, p, c.Who)
	return s.said(sub, err, "%s %s: changed", sub.ID, clean(sub.Email))
}

type subscriberDeleteCmd struct {
	who
	Yes bool `short:"y" help:"Don't ask for confirmation."`
}

// Run deletes a subscriber. It fails if there is none.
func (c *subscriberDeleteCmd) Run(s *session) error {
	do := func() (api.Deleted, error) { return api.DeleteSubscriber.Do(s, s.client, c.query(), c.Who) }
	return deleting(s, c.Yes, "subscriber", c.Who, " with all subscriptions and their proofs", do, nil)
}

type subscriberSubscribeCmd struct {
	who
	List []string `arg:"" name:"list" help:"IDs of lists, each optionally with a state: ID=subscribed (needs --source if the list has double opt-in) or ID=pending."`
	consentFlags
}

func (c *subscriberSubscribeCmd) Run(s *session) error {
	consent, err := c.consent()
	if err != nil {
		return err
	}
	sub, err := api.Subscribe.Do(s, s.client, api.SubscribeRequest{Account: c.Account,
		Lists: subscriptions(c.List), Consent: consent, Resubscribe: c.Resubscribe}, c.Who)
	return s.subscribed(sub, err)
}

// subscriberLeaveCmd takes a subscriber off a list.
type subscriberLeaveCmd struct {
	who
	List string `arg:"" name:"list" help:"ID of the list."`
}

func (c *subscriberLeaveCmd) Run(s *session) error {
	answer, err := api.LeaveList.Do(s, s.client, c.query(), c.Who, c.List)
	format := "%s is unsubscribed from the list %s"
	if !answer.Deleted {
		format = "%s was not on the list %s, and gets no mail of it"
	}
	return s.said(answer, err, format, clean(c.Who), clean(c.List))
}
