package app_test

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testsmtp"
)

// recipients returns the recipients of a campaign by address.
func recipients(t *testing.T, client *api.Client, id string, q api.CampaignRecipientQuery) map[string]api.CampaignRecipient {
	t.Helper()
	q.PageSize = 1000
	page, err := api.ListCampaignRecipients.Do(t.Context(), client, q, id)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]api.CampaignRecipient{}
	for _, r := range page.Recipients {
		all[r.Email] = r
	}
	return all
}

// TestEveryEmailShowsAnUnsubscribeLink: RFC 8058 section 2 and the sender rules of Gmail and Yahoo want a
// visible link in the body beside the header. check finds a hidden one, and an email without one isn't sent.
func TestEveryEmailShowsAnUnsubscribeLink(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := startCampaigns(t, relay, nil)
	people(t, client, "weekly", many(30)...)
	for html, want := range map[string]bool{
		`<p>x</p><a href='{{{rcpt.unsubscribeUrl}}}'>x</a>`:                           true,
		`<p>x</p><A HREF=" {{rcpt.preferencesUrl}}">x</A>`:                            true,
		`<p>x</p><!-- <a href="{{rcpt.unsubscribeUrl}}">x</a> -->`:                    false,
		`<p>x</p><p style="display:none"><a href="{{rcpt.unsubscribeUrl}}">x</a></p>`: false,
		`<p>x</p><a href="{{rcpt.unsubscribeUrl}}"></a>`:                              false,
		`<p>x</p><a href="https://a.example/unsubscribe?t=1">x</a>`:                   false,
		`<p>x</p>{{#if subscriber.attributes.none}}{{rcpt.unsubscribeUrl}}{{/if}}`:    false,
	} {
		for _, text := range []string{"", "Leave: {{rcpt.unsubscribeUrl}}"} {
			id := strings.ToLower(t.Name()) + "-" + string(rune('a'+len(html)%26)) + text[:min(1, len(text))]
			draft(t, client, id, "weekly", func(c *api.Campaign) { c.HTML, c.Text = html, text })
			check, err := api.CheckCampaign.Do(t.Context(), client, id)
			if err != nil || check.OK != want || !want && check.Faults[0].Code != "NoUnsubscribeLink" {
				t.Errorf("%s with text %q: %+v, %v", html, text, check, err)
			}
			if _, err := api.DeleteCampaign.Do(t.Context(), client, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err := api.UpdateSubscriber.Do(t.Context(), client, api.SubscriberPatch{Name: new("Nora")}, "p29@example.net")
	if err != nil {
		t.Fatal(err)
	}
	draft(t, client, "c1", "weekly", func(c *api.Campaign) {
		c.HTML = `<p>x</p>{{#unless subscriber.name}}<a href="{{rcpt.unsubscribeUrl}}">leave</a>{{/unless}}`
	})
	sendNow(t, client, "c1")
	st := reaches(t, client, "c1", api.CampaignSent)
	failed := recipients(t, client, "c1", api.CampaignRecipientQuery{State: "failed"})
	if why := failed["p29@example.net"].Response; st.States.Sent != 29 || copies(relay)["p29@example.net"] > 0 ||
		len(failed) != 1 || !strings.Contains(why, "unsubscribe") {
		t.Errorf("%+v, %+v", st.States, failed)
	}
}
