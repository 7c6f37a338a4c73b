package app_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/internal/testsmtp"
)

// TestDomainsCountWhoOpenedAndClicked: each person once. A recount changes nothing of it, and whoever is
// erased is counted no more.
func TestDomainsCountWhoOpenedAndClicked(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, base := startCampaigns(t, relay, nil)
	people(t, client, "weekly", "ann@one.example", "bo@ONE.example", "cy@one.example", "di@two.example")
	draft(t, client, "c1", "weekly", nil)
	sendNow(t, client, "c1")
	reaches(t, client, "c1", api.CampaignSent)
	mails := map[string]testsmtp.Message{}
	for _, m := range relay.Messages() {
		mails[strings.ToLower(m.To[0])] = m
	}
	eventually(t, "a click is not that of a scanner", func() bool {
		return time.Since(*stats(t, client, "c1").Started) > 2*time.Second
	})
	for _, hit := range []struct {
		who  string
		link *regexp.Regexp
	}{{"ann@one.example", pixel}, {"ann@one.example", pixel}, {"bo@one.example", pixel},
		{"bo@one.example", clicked}, {"di@two.example", clicked}} {
		follow(t, base, "GET", hit.link, mails[hit.who], "")
	}
	domains := func() map[string]api.CampaignDomain {
		all := map[string]api.CampaignDomain{}
		for _, d := range stats(t, client, "c1").Domains {
			all[d.Domain] = d
		}
		return all
	}
	want := map[string]api.CampaignDomain{"one.example": {Domain: "one.example", Sent: 3, Opened: 2, Clicked: 1},
		"two.example": {Domain: "two.example", Sent: 1, Clicked: 1}}
	eventually(t, "all is counted", func() bool { return cmp.Equal(want, domains()) })
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
	eventually(t, "who was erased is counted no more", func() bool { return cmp.Equal(want, domains()) })
}
