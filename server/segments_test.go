package server

import (
	"encoding/json"
	"errors"
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

// faultOf returns the first field that a failure names.
func faultOf(err error) string {
	if f, ok := errors.AsType[*api.Failure](err); ok && len(f.Problem.Fields) > 0 {
		return f.Problem.Fields[0].Key
	}
	return ""
}
