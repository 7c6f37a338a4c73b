package e2e_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/api"
	"github.com/postroom/postroom/app/apptest"
	"github.com/postroom/postroom/internal/testsmtp"
)

// segmentBy stores a segment, or changes its rule.
func segmentBy(t *testing.T, client *api.Client, id, rule string) {
	t.Helper()
	_, err := api.CreateSegment.Do(t.Context(), client, api.Segment{Segment: id, Name: id, Rule: []byte(rule)})
	if codeOf(err) == "SegmentExists" {
		_, err = api.UpdateSegment.Do(t.Context(), client, api.SegmentPatch{Rule: []byte(rule)}, id)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCampaignToThoseWhoOpenedAnother sends a campaign. The next go to those who opened it, and to those who
// got it and did not.
func TestCampaignToThoseWhoOpenedAnother(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, base := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", append(apptest.Many(5), "rcpt-550@example.net")...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	segmentBy(t, client, "readers", `{"campaign":"c1","did":"opened"}`)
	segmentBy(t, client, "others",
		`{"and":[{"campaign":"c1","did":"got"},{"not":{"campaign":"c1","did":"opened"}}]}`)
	apptest.SendNow(t, client, "c1")
	apptest.Reaches(t, client, "c1", api.CampaignSent)
	opener := relay.Messages()[2]
	apptest.Follow(t, base, "GET", apptest.Pixel, opener, "")
	apptest.Eventually(t, "somebody opened it", func() bool {
		return apptest.Stats(t, client,
			"c1").Opened == 1
	})

	apptest.People(t, client, "weekly", "late@example.net") // got nothing
	apptest.Draft(t, client, "thanks", "weekly", func(c *api.Campaign) { c.Segments = []string{"readers"} })
	apptest.Draft(t, client, "again", "weekly", func(c *api.Campaign) { c.Segments = []string{"others"} })
	apptest.Draft(t, client, "rest", "weekly", func(c *api.Campaign) {
		c.ExcludeSegments = []string{"readers", "others"}
	})
	before := relay.Count()
	for _, c := range []struct {
		id       string
		audience int
	}{{"thanks", 1}, {"again", 4}, {"rest", 2}} {
		apptest.SendNow(t, client, c.id)
		if st := apptest.Reaches(t, client, c.id, api.CampaignSent); st.Audience != c.audience {
			t.Errorf("%s: %+v", c.id, st)
		}
	}
	got := map[string]int{}
	for _, m := range relay.Messages()[before:] {
		got[m.To[0]]++
	}
	want := map[string]int{"late@example.net": 1}
	for _, one := range apptest.Many(5) {
		want[one] = 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mails of the three (-want +got):\n%s", diff)
	}
	if first := relay.Messages()[before].To[0]; first != opener.To[0] {
		t.Errorf("%s was thanked, %s opened it", first, opener.To[0])
	}
	why, err := api.ExplainSegment.Do(t.Context(), client, api.SegmentSubject{Subscriber: opener.To[0]},
		"others")
	if err != nil || why.In || why.Terms[0].Value != "got, opened" {
		t.Errorf("%+v, %v", why, err)
	}
	notDeletedWhileNamed(t, client)
}

// notDeletedWhileNamed: a campaign stays while segments name it, or an unfinished campaign excludes its
// people.
func notDeletedWhileNamed(t *testing.T, client *api.Client) {
	t.Helper()
	ctx := t.Context()
	_, err := api.DeleteCampaign.Do(ctx, client, "c1")
	if codeOf(err) != "CampaignInUse" || apptest.Status(err) != http.StatusConflict ||
		!strings.Contains(err.Error(), "others, readers") {
		t.Errorf("deleted while segments name it: %v", err)
	}
	for _, id := range []string{"others", "readers"} {
		segmentBy(t, client, id, `{"tag":"x"}`)
	}
	apptest.Draft(t, client, "later", "weekly", func(c *api.Campaign) { c.ExcludeCampaigns = []string{"c1"} })
	pause := true // so that later stays unfinished
	if _, err := api.PutQueue.Do(ctx, client, api.QueuePatch{Paused: &pause}, "bulk"); err != nil {
		t.Fatal(err)
	}
	apptest.SendNow(t, client, "later")
	_, err = api.DeleteCampaign.Do(ctx, client, "c1")
	if codeOf(err) != "CampaignInUse" || !strings.Contains(err.Error(), "later") {
		t.Errorf("deleted while a campaign excludes it: %v", err)
	}
	if _, err := api.CancelCampaign.Do(ctx, client, "later"); err != nil {
		t.Fatal(err)
	}
	if deleted, err := api.DeleteCampaign.Do(ctx, client, "c1"); err != nil || !deleted.Deleted {
		t.Errorf("%+v, %v", deleted, err)
	}
}

// TestCampaignIsNotSelectedByItself: nor by one of another account, even if the segment says so later.
func TestCampaignIsNotSelectedByItself(t *testing.T) {
	t.Parallel()
	relay := testsmtp.Start(t, testsmtp.Options{})
	client, _ := runCampaigns(t, relay, nil)
	apptest.People(t, client, "weekly", apptest.Many(2)...)
	apptest.Draft(t, client, "c1", "weekly", nil)
	segmentBy(t, client, "own", `{"not":{"campaign":"c1","did":"got"}}`)
	_, err := api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{Segments: &[]string{"own"}}, "c1")
	if apptest.Status(err) != http.StatusBadRequest || !strings.Contains(err.Error(), "segments[0]") {
		t.Errorf("a campaign selects by itself: %v", err)
	}
	segmentBy(t, client, "own", `{"tag":"x"}`)
	_, err = api.UpdateCampaign.Do(t.Context(), client, api.CampaignPatch{ExcludeSegments: &[]string{"own"}},
		"c1")
	if err != nil {
		t.Fatal(err)
	}
	segmentBy(t, client, "own", `{"campaign":"c1","did":"opened"}`)
	_, err = api.SendCampaign.Do(t.Context(), client, api.CampaignStart{}, "c1")
	if codeOf(err) != "CampaignRefused" || !strings.Contains(err.Error(), "excludeSegments[0]") {
		t.Errorf("sent by itself: %v", err)
	}
}
