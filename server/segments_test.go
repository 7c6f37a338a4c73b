package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/postroom/postroom/api"
)

// TestSegmentsOverTheAPI goes once through all that can be done with segments.
func TestSegmentsOverTheAPI(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	for email, seats := range map[string]float64{"ann@example.net": 3, "bo@example.net": 5} {
		_, err := api.CreateSubscriber.Do(ctx, w.client, api.SubscriberRequest{Email: email,
			Attributes: map[string]any{"seats": seats}})
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := api.CreateSegment.Do(ctx, w.client, api.Segment{Name: "Large ones",
		Rule: json.RawMessage(`{"attribute":"seats","gte":4}`)})
	if err != nil || made.Segment.Segment != "large-ones" || made.Sentence != "seats is at least 4" {
		t.Fatalf("%+v, %v", made, err)
	}
	if _, err := api.GetSegmentCount.Do(ctx, w.client, "large-ones"); codeOf(err) != "CountNotFound" {
		t.Errorf("a count that was not asked for: %v", err)
	}
	count, err := api.CountSegment.Do(ctx, w.client, "large-ones")
	for deadline := time.Now().Add(20 * time.Second); err == nil && count.State == "running"; {
		if time.Now().After(deadline) {
			t.Fatalf("still counting: %+v", count)
		}
		count, err = api.GetSegmentCount.Do(ctx, w.client, "large-ones")
	}
	if err != nil || count.Count != 1 || count.Done != 2 || count.Sample[0].Email != "bo@example.net" {
		t.Errorf("the count: %+v, %v", count, err)
	}
	why, err := api.ExplainSegment.Do(ctx, w.client, api.SegmentSubject{Subscriber: "ann@example.net"},
		"large-ones")
	if err != nil || why.In || len(why.Terms) != 1 || why.Terms[0].Value != "3" {
		t.Errorf("why: %+v, %v", why, err)
	}
	page, err := api.ListSubscribers.Do(ctx, w.client, api.SubscriberQuery{Segment: "large-ones"})
	if err != nil || len(page.Subscribers) != 1 {
		t.Errorf("its subscribers: %+v, %v", page, err)
	}
	changed, err := api.UpdateSegment.Do(ctx, w.client, api.SegmentPatch{Rule: []byte(`{"tag":"x"}`)},
		"large-ones")
	if err != nil || changed.Version != 2 || changed.Name != "Large ones" {
		t.Errorf("changed: %+v, %v", changed, err)
	}
	if _, err := api.CreateSegment.Do(ctx, w.client, api.Segment{Name: "N",
		Rule: []byte(`{"and":[{"tag":"x"},{"tag":7}]}`)}); faultOf(err) != "rule.and[1].tag" {
		t.Errorf("a wrong rule: %v", err)
	}
	all, err := api.ListSegments.Do(ctx, w.client, api.SegmentQuery{})
	if err != nil || all.Total != 1 {
		t.Errorf("all: %+v, %v", all, err)
	}
	deleted, err := api.DeleteSegment.Do(ctx, w.client, "large-ones")
	if err != nil || !deleted.Deleted {
		t.Errorf("deleted: %+v, %v", deleted, err)
	}
}

// TestSegmentsNameCampaigns: which exist, and are not deleted while they are named.
func TestSegmentsNameCampaigns(t *testing.T) {
	t.Parallel()
	w, ctx := setup(t), t.Context()
	rule := json.RawMessage(`{"not":{"campaign":"spring","did":"opened"}}`)
	_, err := api.CreateSegment.Do(ctx, w.client, api.Segment{Segment: "idle", Name: "Idle", Rule: rule})
	if faultOf(err) != "rule.not.campaign" {
		t.Errorf("a campaign that does not exist: %v", err)
	}
	_, err = api.CreateCampaign.Do(ctx, w.client, api.Campaign{Campaign: "spring", Name: "Spring"})
	if err != nil {
		t.Fatal(err)
	}
	made, err := api.CreateSegment.Do(ctx, w.client, api.Segment{Segment: "idle", Name: "Idle", Rule: rule})
	if err != nil || made.Sentence != "not (opened campaign spring)" || len(made.Warnings) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	_, err = api.DeleteCampaign.Do(ctx, w.client, "spring")
	f, _ := errors.AsType[*api.Failure](err)
	if f == nil || f.Problem.StatusCode != http.StatusConflict || f.Problem.Code != "CampaignInUse" ||
		marshal(t, f.Problem.Details) != `{"segments":["idle"]}` {
		t.Errorf("deleted while a segment names it: %+v", f)
	}
	if _, err := api.DeleteSegment.Do(ctx, w.client, "idle"); err != nil {
		t.Fatal(err)
	}
	if deleted, err := api.DeleteCampaign.Do(ctx, w.client, "spring"); err != nil || !deleted.Deleted {
		t.Errorf("%+v, %v", deleted, err)
	}
}

// faultOf returns the first field that a failure names.
func faultOf(err error) string {
	if f, ok := errors.AsType[*api.Failure](err); ok && len(f.Problem.Fields) > 0 {
		return f.Problem.Fields[0].Key
	}
	return ""
}
