package main

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/postroom/postroom/api"
)

type campaignSendCmd struct {
	ID    string `arg:"" help:"ID of the campaign."`
	At    string `placeholder:"WHEN" help:"Start: in 10m, 2030-12-24T08:00:00Z, or 2030-12-24T08:00 (in the campaign's time zone). Defaults to now."`
	Watch bool   `short:"w" help:"Show the progress until it finishes."`
	Yes   bool   `short:"y" help:"Don't ask for confirmation."`
}

// Run begins to send. At a terminal it asks.
func (c *campaignSendCmd) Run(s *session) error {
	if s.inTTY && s.errTTY && !c.Yes {
		check, err := api.CheckCampaign.Do(s, s.client, c.ID)
		if err != nil {
			return err
		}
		if check.OK && !s.confirm("Send campaign %s to up to %d people?", clean(c.ID), check.Audience) {
			return fmt.Errorf("nothing was sent")
		}
	}
	run, err := api.SendCampaign.Do(s, s.client, api.CampaignStart{At: startOf(c.At, time.Now())}, c.ID)
	if err == nil && run.Reason != "" {
		return s.said(run, nil, "%s", run.Reason)
	}
	if err != nil || !c.Watch {
		return s.ran(run, err)
	}
	return s.watchCampaign(c.ID)
}

// startOf returns a time as the API takes it: a distance from now is an instant.
func startOf(text string, now time.Time) string {
	at, err := parseWhen(text, now)
	if _, elsewhere := parseTime(text); err != nil || elsewhere == nil {
		return text
	}
	return at.UTC().Format(time.RFC3339)
}

// ran says how a verb left a campaign.
func (s *session) ran(run api.CampaignRun, err error) error {
	return s.answer(run, err, func() {
		more := ""
		switch {
		case run.Reason != "":
			more = ". " + clean(run.Reason)
		case run.State == api.CampaignScheduled && run.At != nil:
			more = ", to begin " + stamp(*run.At, time.Now())
		}
		s.say("campaign %s: %s%s", clean(run.Campaign), run.State, more)
	})
}

type campaignRunCmd struct {
	ID string `arg:"" help:"ID of the campaign."`

	route api.Fetch[api.CampaignRun]
}

func (c *campaignRunCmd) Run(s *session) error {
	run, err := c.route.Do(s, s.client, c.ID)
	return s.ran(run, err)
}

type campaignWinnerCmd struct {
	ID      string `arg:"" help:"ID of the campaign."`
	Variant string `arg:"" help:"Variant to send to the rest of the audience."`
}

func (c *campaignWinnerCmd) Run(s *session) error {
	run, err := api.DecideCampaign.Do(s, s.client, api.CampaignWinner{Variant: c.Variant}, c.ID)
	return s.ran(run, err)
}

type campaignResendCmd struct {
	ID      string `arg:"" help:"ID of the campaign."`
	To      string `required:"" enum:"failed,inDoubt,notOpened,newcomers" placeholder:"WHOM" help:"Recipients: failed, inDoubt, notOpened (no known open) or newcomers (subscribed since)."`
	Subject string `short:"s" placeholder:"TEXT" help:"New subject."`
	Watch   bool   `short:"w" help:"Show the progress until it finishes."`
}

func (c *campaignResendCmd) Run(s *session) error {
	run, err := api.ResendCampaign.Do(s, s.client, api.CampaignResend{To: c.To, Subject: c.Subject}, c.ID)
	if err != nil || !c.Watch || run.Reason != "" {
		return s.ran(run, err)
	}
	return s.watchCampaign(c.ID)
}

func campaignWatch(s *session, c byID) error { return s.watchCampaign(c.ID) }

// waitWords says what a campaign waits for; empty: for nothing.
func waitWords(w *api.CampaignWait) string {
	if w == nil {
		return ""
	}
	words := ", waits: " + clean(w.Reason)
	if w.Until != nil {
		words += " (until " + w.Until.UTC().Format(time.RFC3339) + ")"
	}
	return words
}

// watchCampaign shows the progress of a campaign until nothing more happens by itself. It fails unless that
// is because all was sent, or nothing was begun.
func (s *session) watchCampaign(id string) error {
	var bar *progressbar.ProgressBar
	for {
		stats, err := api.GetCampaignStats.Do(s, s.client, api.CampaignStatsQuery{}, id)
		if s.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if n := len(stats.Runs); n > 0 {
			stats.CampaignNumbers = stats.Runs[n-1].CampaignNumbers // of the run that is watched
		}
		if !api.CampaignUnderWay(stats.State) || stats.State == api.CampaignHeld {
			if bar != nil {
				_ = bar.Clear()
			}
			return s.done(stats, stats.State != api.CampaignSent && stats.State != api.CampaignDraft, func() {
				s.say("campaign %s is %s: %s", clean(id), stats.State, numbersLine(stats.States))
			})
		}
		if total := stats.States.Total(); bar == nil && !stats.Counting && total > 0 {
			bar = s.bar(total, "sending", progressbar.OptionSetItsString("mails"), progressbar.OptionShowIts())
		}
		if bar != nil {
			bar.Describe(stats.State + waitWords(stats.Waits))
			_ = bar.Set(stats.States.Total() - stats.States.Open())
		}
		if sleep(s, time.Second) != nil {
			return nil
		}
	}
}
