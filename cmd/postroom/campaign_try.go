package main

import (
	"cmp"
	"fmt"

	"github.com/postroom/postroom/api"
)

// campaignCheck prints what is wrong. It fails if the campaign can't be sent.
func campaignCheck(s *session, c byID) error {
	check, err := api.CheckCampaign.Do(s, s.client, c.ID)
	if err != nil {
		return err
	}
	return s.done(check, !check.OK, func() {
		for _, f := range check.Faults {
			s.say("fault: %s (%s)", clean(f.Message), clean(f.Code))
		}
		for _, w := range check.Warnings {
			s.say("warning: %s (%s)", clean(w.Message), clean(w.Code))
		}
		if check.OK {
			s.say("campaign %s can be sent, to up to %d people%s", clean(c.ID), check.Audience,
				noteIf(check.Takes != "", "; it takes %s", clean(check.Takes)))
		}
	})
}

type campaignPreviewCmd struct {
	ID      string `arg:"" help:"ID of the campaign."`
	Person  string `arg:"" optional:"" help:"Address or ID of the subscriber to render it for. Defaults to a subscriber of its lists."`
	For     string `placeholder:"WHO" help:"Same as the argument."`
	Variant string `placeholder:"ID" help:"Variant. Defaults to the first."`
	As      string `enum:"text,html,subject" default:"text" help:"Part to print: text (with the subject), html or subject."`
}

// Run prints the mail, and notes the variables that the person lacks.
func (c *campaignPreviewCmd) Run(s *session) error {
	mail, err := api.PreviewCampaign.Do(s, s.client, api.CampaignSample{Subscriber: cmp.Or(c.Person, c.For),
		Variant: c.Variant}, c.ID)
	return s.answer(mail, err, func() {
		for _, name := range mail.Missing {
			s.note("%s is missing", clean(name))
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

type campaignTestCmd struct {
	ID      string   `arg:"" help:"ID of the campaign."`
	Variant string   `placeholder:"ID" help:"Variant. Defaults to the first."`
	To      []string `arg:"" name:"address" help:"Addresses that receive it, with [Test] before the subject."`
	For     string   `placeholder:"WHO" help:"Address or ID of the subscriber to render it for. Defaults to a subscriber of its lists."`
}

// Run mails it. It fails if one of the addresses is suppressed.
func (c *campaignTestCmd) Run(s *session) error {
	tested, err := api.TestCampaign.Do(s, s.client, api.CampaignTest{To: c.To, Subscriber: c.For,
		Variant: c.Variant}, c.ID)
	if err != nil {
		return err
	}
	suppressed := 0
	for _, mail := range tested.Sent {
		if mail.QueueID == "" {
			suppressed++
		}
	}
	return s.done(tested, suppressed > 0, func() {
		for _, mail := range tested.Sent {
			if mail.QueueID == "" {
				s.say("%s is suppressed: see postroom suppressions check", clean(mail.To))
				continue
			}
			s.say("%s: queued as %s", clean(mail.To), clean(mail.QueueID))
		}
	})
}
