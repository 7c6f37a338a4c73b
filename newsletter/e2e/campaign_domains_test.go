package e2e_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestDomainsCountWhoOpenedAndClicked: each person once. A recount changes nothing of it, and whoever is
// erased is counted no more.
func TestDomainsCountWhoOpenedAndClicked(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, base := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", "ann@one.example", "bo@ONE.example", "cy@one.example", "di@two.example")
	apptest.Draft(t, client, "c1", "weekly", nil)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	mails := map[string]testsmtp.Message{}
	for _, m := range relay.Messages() {
		mails[strings.ToLower(m.To[0])] = m
	}
	apptest.Eventually(t, "a click is not that of a scanner", func() bool {
		return time.Since(*apptest.Stats(t, client, "c1").Started) > 2*time.Second
	})
	for _, hit := range []struct {
		who  string
		link *regexp.Regexp
	}{{"ann@one.example", apptest.Pixel}, {"ann@one.example", apptest.Pixel}, {"bo@one.example", apptest.Pixel},
		{"bo@one.example", apptest.Clicked}, {"di@two.example", apptest.Clicked}} {
		apptest.Follow(t, base, "GET", hit.link, mails[hit.who], "")
	}
	domains := func() map[string]api.CampaignDomain {
		all := map[string]api.CampaignDomain{}
		for _, d := range apptest.Stats(t, client, "c1").Domains {
			all[d.Domain] = d
		}
		return all
	}
	want := map[string]api.CampaignDomain{"one.example": {Domain: "one.example", Sent: 3, Opened: 2, Clicked: 1},
		"two.example": {Domain: "two.example", Sent: 1, Clicked: 1}}
	apptest.Eventually(t, "all is counted", func() bool { return cmp.Equal(want, domains()) })
	recount, err := api.RecountCampaign.Do(t.Context(), client, "c1")
	if err != nil || recount.Changed {
		t.Errorf("recount: %+v, %v", recount, err)
	}
	if diff := cmp.Diff(want, domains()); diff != "" {
		t.Errorf("recounted (-want +got):\n%s", diff)
	}
	if _, err := api.ErasePerson.Do(t.Context(), client,
		api.ErasureRequest{Email: "bo@one.example"}); err != nil {
		t.Fatal(err)
	}
	want["one.example"] = api.CampaignDomain{Domain: "one.example", Sent: 3, Opened: 1}
	apptest.Eventually(t, "who was erased is counted no more", func() bool { return cmp.Equal(want, domains()) })
}
