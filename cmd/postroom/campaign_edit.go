package main

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/postroom/postroom/api"
)

// campaignFields are the flags of campaigns that can change.
type campaignFields struct {
	From        string   `group:"content" placeholder:"ADDRESS" help:"Sender, such as 'News <news@example.com>'. Default: the account's."`
	ReplyTo     []string `group:"content" sep:"none" placeholder:"ADDRESS" help:"Reply-To address. Repeat the flag for several."`
	Subject     *string  `group:"content" short:"s" placeholder:"TEXT" help:"Subject. Defaults to the template's subject."`
	PreviewText *string  `group:"content" placeholder:"TEXT" help:"Preview text, which mail programs show after the subject."`
	HTML        string   `group:"content" name:"html" placeholder:"FILE" help:"File with the HTML, or - for standard input. Without --text, Postroom derives the text from it."`
	Markdown    string   `group:"content" placeholder:"FILE" help:"File with Markdown, instead of --html."`
	Text        string   `group:"content" placeholder:"FILE" help:"File with the text."`
	Template    *string  `group:"content" placeholder:"ID" help:"Stored template, instead of --html and --text."`
	Params      string   `group:"content" placeholder:"JSON" help:"Data for the template, for example @params.json."`
	Missing     string   `group:"content" enum:",empty,error" default:"" placeholder:"WHAT" help:"Handling of missing variables: empty prints nothing, error refuses the message. Defaults to the template's choice, else to the setting templates.missing."`
	Fallbacks   string   `group:"content" placeholder:"JSON" help:"The values of attributes for people who lack them, such as '{\"firstName\":\"friend\"}'."`
	Locale      *string  `group:"content" placeholder:"LOCALE" help:"Language. Defaults to the account's language."`
	TZ          *string  `group:"content" name:"tz" placeholder:"ZONE" help:"Time zone of dates, the sending window and the send time, for example Europe/Zurich. Defaults to the account's, else to UTC."`
	Variants    string   `group:"content" placeholder:"JSON" help:"Variants, for example @variants.json: a list of objects with an ID (variant) and the fields that differ (subject, previewText, from, template, html, text). [] removes all variants."`
	Test        string   `group:"content" placeholder:"JSON" help:"How the best variant is found, such as '{\"share\":0.2,\"metric\":\"opens\",\"wait\":\"6h\",\"minimum\":50}'. Default: by clicks, 4h after a tenth of the people got one."`
	Tag         []string `group:"content" placeholder:"TAG" help:"Tags, separated by commas."`
	Metadata    string   `group:"content" placeholder:"JSON" help:"Object that every event of its messages contains."`

	List            []string `group:"audience" placeholder:"ID" help:"List whose subscribers receive it. Repeat the flag for several."`
	Segment         []string `group:"audience" placeholder:"ID" help:"Segment that limits the recipients. Repeat the flag to add more segments."`
	ExcludeList     []string `group:"audience" placeholder:"ID" help:"List whose subscribers don't receive it. Repeat the flag for several."`
	ExcludeSegment  []string `group:"audience" placeholder:"ID" help:"Segment whose subscribers don't receive it. Repeat the flag for several."`
	ExcludeCampaign []string `group:"audience" placeholder:"ID" help:"Campaign whose recipients don't receive it. Repeat the flag for several."`

	Gateway     *string  `placeholder:"ID" help:"Gateway to send through. Defaults to the account's relays."`
	Rate        *float64 `placeholder:"N" help:"Maximum emails per second, or 0 for no extra limit."`
	WindowDays  []string `enum:"mon,tue,wed,thu,fri,sat,sun" placeholder:"DAY" help:"Days to send on, for example mon,tue. Needs --window-from and --window-until. Defaults to every day."`
	WindowFrom  string   `placeholder:"HH:MM" help:"Start of the daily sending window, for example 08:00."`
	WindowUntil string   `placeholder:"HH:MM" help:"End of the daily sending window, for example 20:00."`
	WindowOf    string   `enum:",sender,recipient" default:"" placeholder:"WHOSE" help:"Clock of the sending window: sender (the campaign's time zone, the default) or recipient."`
	EndAt       string   `placeholder:"WHEN" help:"Time to stop sending: in 48h, or 2030-12-24T08:00:00Z."`
	Events      *string  `enum:"none,ends,all" placeholder:"WHICH" help:"Events about its recipients for webhooks: none, ends (failures, bounces, complaints and unsubscribes; the default) or all."`
	KeepLog     *bool    `negatable:"" help:"Add its messages to the email log and the search index."`
	Archive     *bool    `negatable:"" help:"Publish it in the archive of its public lists after sending. You can change this flag at any time."`
	TrackOpens  *bool    `negatable:"" help:"Track opens. Defaults to the settings."`
	TrackClicks *bool    `negatable:"" help:"Track clicks. Defaults to the settings."`
}

// patch returns the change that the flags name. was is how the mail was rendered so far; nil: as html.
func (f campaignFields) patch(con *console, was *api.Render) (api.CampaignPatch, error) {
	p := api.CampaignPatch{Subject: f.Subject, PreviewText: f.PreviewText, Template: f.Template,
		Locale: f.Locale, TZ: f.TZ, Gateway: f.Gateway, Rate: f.Rate, Events: f.Events, KeepLog: f.KeepLog,
		Archive:    f.Archive,
		TrackOpens: toPointer(f.TrackOpens), TrackClicks: toPointer(f.TrackClicks), Tags: ids(f.Tag),
		Lists:    ids(f.List),
		Segments: ids(f.Segment), ExcludeLists: ids(f.ExcludeList), ExcludeSegments: ids(f.ExcludeSegment),
		ExcludeCampaigns: ids(f.ExcludeCampaign), Window: f.window()}
	for _, step := range []func(*api.CampaignPatch, *console) error{f.addresses, f.content, f.objects} {
		if err := step(&p, con); err != nil {
			return p, err
		}
	}
	if f.renders() {
		p.Render = &api.Render{}
		if was != nil {
			*p.Render = *was
		}
		if f.HTML+f.Markdown != "" {
			p.Render.Format = map[bool]string{true: "markdown", false: "html"}[f.Markdown != ""]
		}
		p.Render.Missing = cmp.Or(f.Missing, p.Render.Missing)
		if f.Params != "" {
			var err error
			if p.Render.Params, err = con.readJSON("--params", f.Params); err != nil {
				return p, err
			}
		}
	}
	var err error
	p.EndAt, err = optionalTime("--end-at", f.EndAt, parseWhen)
	return p, err
}

// toPointer returns what changes a pointer to p; nil: nothing, if p is nil.
func toPointer[T any](p *T) **T {
	if p == nil {
		return nil
	}
	return &p
}

// renders reports whether the flags say how the mail is rendered.
func (f campaignFields) renders() bool { return f.HTML+f.Markdown+f.Params+f.Missing != "" }

// ids returns a list that was given; nil: none was. One empty id is a list without any.
func ids(given []string) *[]string {
	if given == nil {
		return nil
	}
	list := []string{}
	for _, id := range given {
		if id != "" {
			list = append(list, id)
		}
	}
	return &list
}

func (f campaignFields) window() *api.CampaignWindow {
	w := &api.CampaignWindow{Days: f.WindowDays, From: f.WindowFrom, Until: f.WindowUntil, Of: f.WindowOf}
	if reflect.ValueOf(*w).IsZero() {
		return nil
	}
	return w
}

func (f campaignFields) addresses(p *api.CampaignPatch, _ *console) error {
	if f.From != "" {
		from, err := oneAddress("--from", f.From)
		if err != nil {
			return err
		}
		p.From = &from
	}
	for _, text := range f.ReplyTo {
		list, err := parseAddresses(text)
		if err != nil {
			return usage("--reply-to: %v", err)
		}
		p.ReplyTo = new(append(*cmp.Or(p.ReplyTo, new(api.Addresses)), list...))
	}
	return nil
}

func (f campaignFields) content(p *api.CampaignPatch, con *console) error {
	if f.HTML != "" && f.Markdown != "" {
		return usage("give --html or --markdown, not both")
	}
	for _, part := range []struct {
		flag, file string
		into       **string
	}{{"--html", f.HTML, &p.HTML}, {"--markdown", f.Markdown, &p.HTML}, {"--text", f.Text, &p.Text}} {
		text, err := con.readPart(part.flag, part.file)
		if err != nil {
			return err
		}
		if text != nil {
			*part.into = text
		}
	}
	return nil
}

// readPart returns the text of a file that a flag names, - for standard input; nil: it names none.
func (c *console) readPart(flag, file string) (*string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := c.read("@"+strings.TrimPrefix(file, "@"), file == "-")
	if err != nil {
		return nil, usage("%s: %v", flag, err)
	}
	return new(string(text)), nil
}

func (f campaignFields) objects(p *api.CampaignPatch, con *console) error {
	for _, part := range []struct {
		flag, value string
		into        *json.RawMessage
	}{{"--metadata", f.Metadata, &p.Metadata}, {"--fallbacks", f.Fallbacks, &p.Fallbacks}} {
		if part.value == "" {
			continue
		}
		text, err := con.readJSON(part.flag, part.value)
		if err != nil {
			return err
		}
		*part.into = text
	}
	for _, part := range []struct {
		flag, value string
		into        any
	}{{"--variants", f.Variants, &p.Variants}, {"--test", f.Test, &p.Test}} {
		if part.value == "" {
			continue
		}
		text, err := con.readJSON(part.flag, part.value)
		if err == nil {
			err = json.Unmarshal(text, part.into)
		}
		if err != nil {
			return usage("%s: %v", part.flag, err)
		}
	}
	return nil
}

type campaignAddCmd struct {
	Name    string `arg:"" help:"Name, for example 'Spring news'."`
	ID      string `placeholder:"ID" help:"ID. Derived from the name by default."`
	Account string `placeholder:"ID" help:"Account that sends it. Defaults to the token's account, else default."`
	campaignFields
}

func (c *campaignAddCmd) Run(s *session) error {
	p, err := c.patch(s.console, nil)
	if err != nil {
		return err
	}
	campaign := api.Campaign{Campaign: c.ID, Account: c.Account, Name: c.Name}
	api.Patch(&campaign, p)
	made, err := api.CreateCampaign.Do(s, s.client, campaign)
	return s.said(made, err, "campaign %s of account %s: a draft; to send it: postroom campaign send %s",
		made.Campaign.Campaign, clean(made.Account), made.Campaign.Campaign)
}

type campaignUpdateCmd struct {
	ID              string  `arg:"" help:"ID of the campaign."`
	Name            *string `placeholder:"TEXT" help:"Name."`
	NoFrom          bool    `help:"Use the account's sender."`
	NoWindow        bool    `help:"Send at any time."`
	NoEnd           bool    `help:"Remove the end time."`
	DefaultTracking bool    `help:"Track opens and clicks by the settings."`
	campaignFields
}

func (c *campaignUpdateCmd) Run(s *session) error {
	var was *api.Render
	if c.renders() {
		now, err := api.GetCampaign.Do(s, s.client, c.ID)
		if err != nil {
			return err
		}
		was = now.Render
	}
	p, err := c.patch(s.console, was)
	if err != nil {
		return err
	}
	p.Name = c.Name
	if c.NoFrom {
		p.From = &api.Address{}
	}
	if c.NoWindow {
		p.Window = &api.CampaignWindow{}
	}
	if c.NoEnd {
		p.EndAt = &time.Time{}
	}
	if c.DefaultTracking {
		p.TrackOpens, p.TrackClicks = new(*bool), new(*bool)
	}
	if reflect.ValueOf(p).IsZero() {
		return errNothing
	}
	changed, err := api.UpdateCampaign.Do(s, s.client, p, c.ID)
	return s.said(changed, err, "campaign %s: changed", changed.Campaign.Campaign)
}

type campaignCopyCmd struct {
	Source string `arg:"" name:"id" help:"ID of the campaign."`
	Name   string `placeholder:"TEXT" help:"Name of the copy. Defaults to Copy of …."`
	As     string `placeholder:"ID" help:"ID of the copy. Derived from its name by default."`
}

func (c *campaignCopyCmd) Run(s *session) error {
	made, err := api.CopyCampaign.Do(s, s.client, api.CampaignCopy{Campaign: c.As, Name: c.Name}, c.Source)
	return s.said(made, err, "campaign %s: a draft, copied from %s", made.Campaign.Campaign, clean(c.Source))
}
