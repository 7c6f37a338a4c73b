package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// waitsFor waits until a campaign says what it waits for, in the campaign and in its numbers.
func waitsFor(t *testing.T, client *api.Client, id, words string) *time.Time {
	t.Helper()
	var waits *api.CampaignWait
	apptest.Eventually(t, id+" waits: "+words, func() bool {
		c, err := api.GetCampaign.Do(t.Context(), client, id)
		if err != nil {
			t.Fatal(err)
		}
		waits = apptest.Stats(t, client, id).Waits
		return c.Waits != nil && waits != nil && waits.Until != nil && strings.Contains(waits.Reason, words)
	})
	return waits.Until
}

// TestACampaignSaysWhatItWaitsFor: its window, its rate, its relay's limit, its recipients' windows, and the
// winner of its test, and until when. It no longer does once it continues.
func TestACampaignSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(4)...)
	_, err := api.CreateGateway.Do(t.Context(), client, api.Gateway{Gateway: "slow", Host: relay.Host(),
		Port: relay.Port(), Limits: &api.Limits{PerDay: 1}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	clock := func(in time.Duration) string { return now.Add(in).Format("15:04") }
	closed := &api.CampaignWindow{From: clock(2 * time.Hour), Until: clock(4 * time.Hour)}
	theirs := *closed
	theirs.Of = "recipient"
	for id, change := range map[string]func(c *api.Campaign){
		"window": func(c *api.Campaign) { c.Window = closed },
		"theirs": func(c *api.Campaign) { c.Window = &theirs },
		"rate":   func(c *api.Campaign) { c.Rate = 0.01 },
		"limit":  func(c *api.Campaign) { c.Gateway = "slow" },
		"test": func(c *api.Campaign) {
			c.Variants = []api.CampaignVariant{{Variant: "a"}, {Variant: "b"}}
			c.Test = &api.CampaignTrial{Share: 0.5, Minimum: 1, Wait: "1h"}
		},
	} {
		apptest.Draft(t, client, id, "weekly", change)
		apptest.SendNow(t, client, id)
	}
	for id, want := range map[string]struct {
		words string
		least time.Duration // until it continues, from now
	}{"window": {"window is closed", 90 * time.Minute}, "theirs": {"windows of the recipients",
		90 * time.Minute},
		"rate": {"its rate", 30 * time.Second}, "limit": {"", time.Second},
		"test": {"winner of the test", 50 * time.Minute}} {
		if until := waitsFor(t, client, id, want.words); until == nil || until.Sub(now) < want.least {
			t.Errorf("%s waits until %v, want at least %s", id, until, want.least)
		}
	}
	if _, err := api.PauseCampaign.Do(t.Context(), client, "window"); err != nil {
		t.Fatal(err)
	}
	if c, err := api.GetCampaign.Do(t.Context(), client, "window"); err != nil || c.Waits != nil {
		t.Errorf("a paused campaign waits for %+v, %v", c.Waits, err)
	}
}

// TestExcludedCampaignsCountUpToTheTurn: an excluded campaign begins while the other is being sent.
func TestExcludedCampaignsCountUpToTheTurn(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	all := apptest.Many(24)
	apptest.People(t, client, "weekly", all...)
	apptest.People(t, client, "few", all[22:]...)
	apptest.Draft(t, client, "b", "few", nil)
	apptest.Draft(t, client, "a", "weekly", func(c *api.Campaign) {
		c.Rate, c.ExcludeCampaigns = 4,
			[]string{"b"}
	})
	apptest.SendNow(t, client, "a")
	relay.Wait(1)
	apptest.SendNow(t, client, "b")
	apptest.Reaches(t, client, "b", api.CampaignSent)
	apptest.Reaches(t, client, "a", api.CampaignSent)
	mails := map[string]int{}
	for _, m := range relay.Messages() {
		mails[m.To[0]]++
	}
	for _, one := range all {
		if mails[one] != 1 {
			t.Errorf("%s got %d mails, want 1", one, mails[one])
		}
	}
	if len(mails) != len(all) {
		t.Error(fmt.Sprint(mails))
	}
}

// TestATemplateEditedInAPauseReachesTheRest: whoever has not got the mail gets the template as it is when the
// campaign is resumed, as the preview shows it.
func TestATemplateEditedInAPauseReachesTheRest(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(6)...)
	made, err := api.CreateTemplate.Do(t.Context(), client, api.TemplateRequest{Name: "T",
		TemplateDefinition: api.TemplateDefinition{Content: api.TemplateContent{Subject: "Old",
			HTML: apptest.LetterHTML}}})
	if err != nil {
		t.Fatal(err)
	}
	apptest.Draft(t, client, "c", "weekly", func(c *api.Campaign) {
		c.Rate, c.CampaignContent = 1, api.CampaignContent{Template: made.ID}
	})
	apptest.SendNow(t, client, "c")
	relay.Wait(1)
	if _, err := api.PauseCampaign.Do(t.Context(), client, "c"); err != nil {
		t.Fatal(err)
	}
	apptest.Eventually(t, "what was under way is over", func() bool {
		return apptest.Stats(t, client,
			"c").States.Sending == 0
	})
	old := len(relay.Messages())
	if _, err := api.UpdateTemplate.Do(t.Context(), client, api.TemplatePatch{
		Content: &api.TemplateContent{Subject: "New", HTML: apptest.LetterHTML}}, made.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := api.ResumeCampaign.Do(t.Context(), client, "c"); err != nil {
		t.Fatal(err)
	}
	apptest.Reaches(t, client, "c", api.CampaignSent)
	for i, m := range relay.Messages() {
		want := map[bool]string{true: "Old", false: "New"}[i < old]
		if !strings.Contains(string(m.Data), "Subject: "+want+"\r\n") {
			t.Errorf("mail %d is not of the template %s", i, want)
		}
	}
}
